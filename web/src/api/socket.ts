/**
 * Lists that come over a WebSocket of the API until their job is over. A connection that is lost
 * comes back by itself and asks for what follows the last thing it got.
 */
import { retryAfterMs } from './live.svelte';

/** The server closes so when there is nothing more to come. */
const OVER = 1000;

export interface Following {
  stop(): void;
}

/**
 * @param path names the socket, anew for each connection, so that it can go on where it stopped
 * @param take gets each list
 * @param over is told when all has come
 */
export function follow<T>(path: () => string, take: (items: T[]) => void, over: () => void): Following {
  let socket: WebSocket | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;
  let tries = 0;

  const connect = () => {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    socket = new WebSocket(`${scheme}://${location.host}${path()}`);
    socket.onmessage = (message) => {
      tries = 0;
      try {
        take(JSON.parse(String(message.data)) as T[]);
      } catch {
        // What is no list is none of ours.
      }
    };
    socket.onclose = (closed) => {
      if (stopped) return;
      if (closed.code === OVER) over();
      else timer = setTimeout(connect, retryAfterMs(tries++, Math.random()));
    };
  };
  connect();
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
      socket?.close();
    },
  };
}
