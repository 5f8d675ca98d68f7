// Builds the page anew and says whether what is committed under dist/ is the same. Compressed
// copies are compared by what they hold: their bytes may differ from one machine's zlib to
// another's.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';

/** Every file under a folder, by name, as it is read. */
function contents(folder) {
  const files = new Map();
  for (const name of readdirSync(folder, { recursive: true }).map(String)) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) continue;
    const bytes = readFileSync(path);
    files.set(name, name.endsWith('.br') ? brotliDecompressSync(bytes) : name.endsWith('.gz') ? gunzipSync(bytes) : bytes);
  }
  return files;
}

const fresh = mkdtempSync(join(tmpdir(), 'era-page-'));
try {
  const run = (program, ...args) => execFileSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  run('node_modules/.bin/vite', 'build', '--outDir', fresh, '--emptyOutDir', '--logLevel', 'warn');
  run('node', 'scripts/compress.mjs', fresh);
  const [built, committed] = [contents(fresh), contents('dist')];
  const names = new Set([...built.keys(), ...committed.keys()]);
  const differ = [...names].filter((name) => !built.get(name)?.equals(committed.get(name) ?? Buffer.alloc(0)));
  if (differ.length > 0) {
    console.error(`web/dist is not what web/src builds: run \`make page\` and commit it. It differs in:`);
    for (const name of differ.sort()) console.error(`  ${name}`);
    process.exit(1);
  }
  console.log(`web/dist is up to date: ${committed.size} files`);
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
