export * from './format';
export { LANGUAGES, locale, type Language } from './locale.svelte';
export { said, words, type Both, type Catalogue, type Translation } from './words';
