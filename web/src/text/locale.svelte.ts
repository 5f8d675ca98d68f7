/**
 * The reader's language: what the browser prefers, until the reader chooses. Dates, numbers and
 * durations follow the browser's own locale where it is of that language, so that a reader in
 * Britain does not get American dates.
 */
export type Language = 'en' | 'zh';
export const LANGUAGES: readonly { id: Language; name: string }[] = [
  { id: 'en', name: 'English' },
  { id: 'zh', name: '简体中文' },
];
const KEY = 'era.language';

/** The first language of a list that there are words in. */
export function preferred(wanted: readonly string[]): Language {
  for (const tag of wanted) {
    const primary = tag.toLowerCase().split('-')[0];
    if (primary === 'zh' || primary === 'en') return primary;
  }
  return 'en';
}

/** The tag that formats follow: the reader's own where it is of the language. */
export function formatTag(language: Language, wanted: readonly string[]): string {
  const own = wanted.find((tag) => tag.toLowerCase().split('-')[0] === language);
  return own ?? (language === 'zh' ? 'zh-CN' : 'en');
}

function stored(): Language | undefined {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'en' || kept === 'zh' ? kept : undefined;
  } catch {
    return undefined;
  }
}

const browser = typeof navigator === 'undefined' ? ['en'] : navigator.languages;

class Locale {
  language = $state<Language>(stored() ?? preferred(browser));
  /** For `Intl`. */
  tag = $derived(formatTag(this.language, browser));

  choose(language: Language): void {
    this.language = language;
    try {
      localStorage.setItem(KEY, language);
    } catch {
      // It lasts as long as the page, then.
    }
  }
}

export const locale = new Locale();
