/**
 * Light or dark: as the system has it, until the reader chooses. Canvas charts ask here for the
 * colours that the style sheets use, and are told when they change.
 */
export type Theme = 'system' | 'light' | 'dark';
const KEY = 'era.theme';

function stored(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    return 'system';
  }
}

class ThemeChoice {
  chosen = $state<Theme>(stored());
  /** Whether the system is dark; what is seen follows it unless the reader chose. */
  private systemDark = $state(matchMedia('(prefers-color-scheme: dark)').matches);
  /** Paper is light, whatever the screen is. */
  printing = $state(matchMedia('print').matches);
  dark = $derived(!this.printing && (this.chosen === 'system' ? this.systemDark : this.chosen === 'dark'));

  constructor() {
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (change) => {
      this.systemDark = change.matches;
    });
    matchMedia('print').addEventListener('change', (change) => (this.printing = change.matches));
    // Before the sheet is laid out: a canvas that is painted later is printed as it was.
    addEventListener('beforeprint', () => (this.printing = true));
    addEventListener('afterprint', () => (this.printing = false));
    this.show();
  }

  choose(theme: Theme): void {
    this.chosen = theme;
    this.show();
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // It lasts as long as the page, then.
    }
  }

  private show(): void {
    const root = document.documentElement;
    if (this.chosen === 'system') delete root.dataset.theme;
    else root.dataset.theme = this.chosen;
  }
}

export const theme = new ThemeChoice();

let probe: HTMLElement | undefined;

/**
 * A token as a colour that a canvas understands: `colour('--accent')`. Read inside an effect or a
 * derived value, so that a change of theme paints again.
 */
export function colour(token: `--${string}`): string {
  void theme.dark;
  if (!probe) {
    probe = document.createElement('span');
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${token})`;
  return getComputedStyle(probe).color;
}

/** The colour of the n-th line of a chart, from 0. */
export function chartColour(index: number): string {
  return colour(`--chart-${(index % 8) + 1}`);
}

/** The same with less of it: an `rgb()` colour at a share of its strength. */
export function faded(rgb: string, alpha: number): string {
  const [red = '0', green = '0', blue = '0'] = rgb.match(/[\d.]+/g) ?? [];
  return `rgb(${red} ${green} ${blue} / ${alpha})`;
}
