import type { Server } from './server';

/** Signs in as the page does, and gives its cookie. */
export async function signIn(server: Server, user: string, password: string): Promise<string> {
  const response = await fetch(`${server.url}/api/v1/sessions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user, password, cookie: true }),
  });
  const cookie = /era_session=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1];
  if (!cookie) throw new Error(`no session for ${user}: ${response.status} ${await response.text()}`);
  return cookie;
}
