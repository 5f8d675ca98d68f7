/** The alerts of this browser. They outlive the page and are seen by every tab of it. */
import { parsed, type PriceAlert } from './fallen';

const KEY = 'era.price-alerts';
const ALERTS_MAX = 50;

function stored(): PriceAlert[] {
  try {
    return parsed(localStorage.getItem(KEY));
  } catch {
    return [];
  }
}

class Alerts {
  all = $state.raw<readonly PriceAlert[]>(stored());

  constructor() {
    addEventListener('storage', (change) => {
      if (change.key === KEY) this.all = stored();
    });
  }

  /** One a pool: a second one takes the place of the first. */
  set(alert: PriceAlert): void {
    this.keep([...this.all.filter(({ pool }) => pool !== alert.pool), alert].slice(-ALERTS_MAX));
  }

  drop(pool: string): void {
    this.keep(this.all.filter((alert) => alert.pool !== pool));
  }

  private keep(all: readonly PriceAlert[]): void {
    this.all = all;
    try {
      localStorage.setItem(KEY, JSON.stringify(all));
    } catch {
      // It lasts as long as the page, then.
    }
  }
}

export const alerts = new Alerts();
