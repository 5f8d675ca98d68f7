/**
 * The reader's language: what the browser prefers, until the reader chooses. Dates, numbers and the
 * clock follow the browser's own locale, so that a reader in Britain does not get American dates, nor
 * one in Germany, for whom there are English words.
 */
export type Language = 'en' | 'zh';
export const LANGUAGES: readonly { id: Language; name: string }[] = [
  { id: 'en', name: 'English' },
  { id: 'zh', name: '简体中文' },
];
const KEY = 'era.language';

const primary = (tag: string) => tag.toLowerCase().split('-')[0];

/** The first language of a list that there are words in. */
export function preferred(wanted: readonly string[]): Language {
  for (const tag of wanted) {
    const language = primary(tag);
    if (language === 'zh' || language === 'en') return language;
  }
  return 'en';
}

/** The tag of what is said in words, such as `in 5 min`: the reader's own where it is of the language. */
export function wordTag(language: Language, wanted: readonly string[]): string {
  return wanted.find((tag) => primary(tag) === language) ?? (language === 'zh' ? 'zh-CN' : 'en');
}

/**
 * The tag that dates, numbers and the clock follow. English is also for readers of languages that
 * there are no words in: theirs is the first that is not Chinese.
 */
export function formatTag(language: Language, wanted: readonly string[]): string {
  const own = language === 'en' ? wanted.find((tag) => primary(tag) !== 'zh') : undefined;
  return own ?? wordTag(language, wanted);
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
  /** For dates and numbers of `Intl`. */
  tag = $derived(formatTag(this.language, browser));
  /** For its words. */
  wordTag = $derived(wordTag(this.language, browser));

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
