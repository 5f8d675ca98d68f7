/** Asks for prices every minute, and tells those that fell below a limit. */
import { api, call } from '../api';
import { credits, words } from '../text';
import en from '../text/en/market';
import zh from '../text/zh/market';
import { router } from '../shell/router.svelte';
import { told } from '../ui';
import { priceOf } from '../pages/market/fares';
import { fallen } from './fallen';
import { alerts } from './kept.svelte';

const EVERY_MS = 60_000;
const t = words(en, zh);
let below: ReadonlySet<string> = new Set();

export function watch(): () => void {
  const look = () => void check().catch(() => {
    // No answer is no price: the next look tells more, and the frame says that the server is away.
  });
  look();
  const timer = setInterval(look, EVERY_MS);
  return () => clearInterval(timer);
}

async function check(): Promise<void> {
  const market = await call(api.GET('/api/v1/market'));
  const prices = new Map(market.pools.map((pool) => [pool.pool, priceOf(pool.now)]));
  const found = fallen(alerts.all, prices, below);
  below = found.below;
  for (const { pool, below: limit } of found.due) tell(pool, prices.get(pool) ?? 0, limit);
}

function tell(pool: string, price: number, limit: number): void {
  const text = t.fell(pool, credits(price), credits(limit));
  const open = () => router.go(`/market?pool=${encodeURIComponent(pool)}`);
  told(text, { text: t.look, run: open });
  if (!('Notification' in globalThis) || Notification.permission !== 'granted') return;
  const note = new Notification('ERA', { body: text, tag: `era-price-${pool}` });
  note.onclick = () => {
    focus();
    open();
  };
}
