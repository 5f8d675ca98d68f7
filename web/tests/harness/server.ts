/** `era up` on an empty folder and a free port, for tests: started, asked, and stopped again. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { HttpProxy } from 'vite';
import { all } from '../../src/api/all';

/** How long a server may take to be ready on a busy machine. */
const READY_MS = 60_000;
/** How long it may take to stop. */
const STOP_MS = 20_000;

/** The binary that cargo built, or the one that `ERA_BINARY` names. */
export function binary(): string {
  if (process.env.ERA_BINARY) return process.env.ERA_BINARY;
  const target = process.env.CARGO_TARGET_DIR ?? resolve(import.meta.dirname, '../../../target');
  const found = ['debug', 'release'].map((profile) => join(target, profile, 'era')).find((path) => existsSync(path));
  if (!found) throw new Error(`no era binary under ${target}: run \`cargo build -p era\`, or name one in ERA_BINARY`);
  return found;
}

async function freePort(): Promise<number> {
  return new Promise((resolvePort, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolvePort(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

export class Server {
  private constructor(
    /** Where the page is: the binary's own, or that of `ERA_PAGE`. */
    readonly url: string,
    readonly folder: string,
    readonly firstPassword: string,
    private child: ChildProcess,
    private readonly args: string[],
    private readonly page: { close(): Promise<void> } | undefined,
  ) {}

  /** Starts one; `nodes` is a YAML file of simulated nodes. */
  static async start(nodes?: string): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), 'era-page-test-'));
    const port = await freePort();
    const args = ['up', '--data', join(folder, 'data'), '--listen', `127.0.0.1:${port}`, '--insecure-shared-user'];
    if (nodes !== undefined) {
      writeFileSync(join(folder, 'nodes.yaml'), nodes);
      args.push('--nodes', join(folder, 'nodes.yaml'));
    }
    const { child, said } = await launch(args, folder);
    const password = /one-time password: (\S+)/.exec(said)?.[1] ?? '';
    const own = `http://127.0.0.1:${port}`;
    const page = process.env.ERA_PAGE ? await other(process.env.ERA_PAGE, own) : undefined;
    return new Server(page?.url ?? own, folder, password, child, args, page);
  }

  /** The token that lies beside the data for whoever started the server. */
  get token(): string {
    return readFileSync(join(this.folder, 'data', 'local-token'), 'utf8').trim();
  }

  /** Asks the API as the administrator; fails loudly where it refuses. */
  async ask<T = unknown>(method: string, path: string, body?: unknown, token = this.token): Promise<T> {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  /** All of a list, page by page. */
  list<T>(path: string): Promise<T[]> {
    return all((query) => this.ask('GET', `${path}?${new URLSearchParams({ ...query, limit: String(query.limit) })}`));
  }

  /** Ends the process, as a crash of the machine would look to a page; `restart` brings it back. */
  async halt(): Promise<void> {
    await ended(this.child, 'SIGKILL');
  }

  async restart(): Promise<void> {
    this.child = (await launch(this.args, this.folder)).child;
  }

  async stop(): Promise<void> {
    await this.page?.close();
    await ended(this.child);
    endSupervisors(this.folder);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Ends what outlives a server by design: the supervisor of its tasks, known by its folder. */
function endSupervisors(folder: string): void {
  for (const name of existsSync('/proc') ? readdirSync('/proc') : []) {
    if (!/^\d+$/.test(name)) continue;
    try {
      if (readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(folder)) process.kill(Number(name));
    } catch {
      // It has ended meanwhile.
    }
  }
}

/**
 * Serves a folder as the page in front of a server, so that a page can be tried without building
 * the binary anew. What is committed is tested without this.
 */
async function other(outDir: string, server: string): Promise<{ url: string; close(): Promise<void> }> {
  const { preview } = await import('vite');
  const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; frame-src 'self'";
  const port = await freePort();
  // A stream that has nothing to tell yet has begun all the same.
  const configure = (proxy: HttpProxy.ProxyServer) => {
    proxy.on('proxyRes', (_answer, _asked, response) => void setImmediate(() => response.flushHeaders()));
  };
  const served = await preview({
    configFile: false,
    build: { outDir },
    preview: { port, host: '127.0.0.1', headers: { 'content-security-policy': policy }, proxy: { '/api': { target: server, ws: true, configure }, '/metrics': server, '/readyz': server } },
    logLevel: 'silent',
  });
  return { url: `http://127.0.0.1:${port}`, close: () => served.close() };
}

async function launch(args: string[], folder: string): Promise<{ child: ChildProcess; said: string }> {
  // A home of its own: the binary notes there where this user's server runs.
  const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: join(folder, 'config') };
  const child = spawn(binary(), args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  let complained = '';
  child.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
  child.stderr?.on('data', (bytes: Buffer) => (complained = (complained + bytes.toString()).slice(-4000)));
  const deadline = Date.now() + READY_MS;
  const url = `http://${args[args.indexOf('--listen') + 1]}`;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`era up ended with ${child.exitCode}: ${complained}`);
    const ready = await fetch(`${url}/readyz`).then((response) => response.ok, () => false);
    if (ready && said.includes('everything is kept under')) return { child, said };
    await new Promise((wait) => setTimeout(wait, 100));
  }
  child.kill('SIGKILL');
  throw new Error(`era up was not ready after ${READY_MS} ms: ${complained}`);
}

async function ended(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolveGone) => child.once('exit', () => resolveGone()));
  child.kill(signal);
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await gone;
  clearTimeout(late);
}
