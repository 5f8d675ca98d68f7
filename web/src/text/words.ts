/**
 * The words of a part of the page in the reader's language. A catalogue is an object of strings
 * and of functions that make strings; the Chinese one must have the same keys and arguments.
 *
 *     import en from '../../text/en/overview';
 *     import zh from '../../text/zh/overview';
 *     const t = words(en, zh);      // then {t.title} and {t.left(3)} in the markup
 */
import { locale } from './locale.svelte';

export type Catalogue = { readonly [key: string]: string | ((...args: any[]) => string) };

/** The same keys, each a string or a function of the same arguments. */
export type Translation<T extends Catalogue> = {
  readonly [K in keyof T]: T[K] extends (...args: infer A) => string ? (...args: A) => string : string;
};

export function words<T extends Catalogue>(en: T, zh: Translation<T>): Translation<T> {
  return new Proxy(en as unknown as Translation<T>, {
    // Read at every use, so that a change of language changes what is on the screen.
    get: (_, key) => (locale.language === 'zh' ? zh : (en as unknown as Translation<T>))[key as keyof T],
  });
}

/** Words that are known where a page is declared, before its catalogue is loaded. */
export interface Both {
  en: string;
  zh: string;
}

export function said(both: Both): string {
  return both[locale.language];
}
