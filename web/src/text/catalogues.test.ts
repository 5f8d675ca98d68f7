import { describe, expect, it } from 'vitest';
import type { Catalogue } from './words';

const english = import.meta.glob<{ default: Catalogue }>('./en/*.ts', { eager: true });
const chinese = import.meta.glob<{ default: Catalogue }>('./zh/*.ts', { eager: true });

describe('every catalogue', () => {
  for (const [path, { default: en }] of Object.entries(english)) {
    const zh = chinese[path.replace('./en/', './zh/')]?.default;
    it(`${path} is there in both languages, word for word`, () => {
      expect(zh, 'the Chinese one').toBeDefined();
      expect(Object.keys(zh ?? {}).sort()).toEqual(Object.keys(en).sort());
      for (const [key, said] of Object.entries(en)) expect(typeof zh?.[key], key).toBe(typeof said);
    });
  }
  it('has an English one', () => {
    const names = (all: object, folder: string) => Object.keys(all).map((path) => path.replace(folder, ''));
    expect(names(chinese, './zh/').sort()).toEqual(names(english, './en/').sort());
  });
});
