import { describe, expect, it } from 'vitest';
import { BLANK } from './draft';
import { looksSecret, read, written } from './kept';

describe('a draft that is kept', () => {
  it('is read as it was written', () => {
    const draft = { ...BLANK, command: 'python train.py', by: '2030-01-01T00:00', env: { MODE: 'fast' }, more: { secrets: ['WANDB_API_KEY'] } };
    expect(read(written(draft, 5))).toEqual({ draft, at: 5, withheld: [] });
  });

  it('has no value that looks like a credential', () => {
    const text = written({ ...BLANK, env: { WANDB_API_KEY: 'sesame', DB: 'postgres://ada:sesame@db/x', MODE: 'fast' } }, 5);
    expect(text).not.toContain('sesame');
    expect(read(text)).toMatchObject({ draft: { env: { WANDB_API_KEY: '', DB: '', MODE: 'fast' } }, withheld: ['WANDB_API_KEY', 'DB'] });
    for (const name of ['OPENAI_KEY', 'GITHUB_PAT', 'AWS_CREDENTIALS', 'DB_PASS', 'ssh_key', 'MYSQL_PWD']) expect(looksSecret(name, 'x'), name).toBe(true);
    for (const [name, value] of [['KEYBOARD', 'us'], ['PWD', '/run/era'], ['URL', 'https://a:80/b'], ['URL', 'https://a/b:c@d']] as const) expect(looksSecret(name, value), name).toBe(false);
  });

  it('that another version wrote is none', () => {
    const text = (changes: object) => JSON.stringify({ draft: { ...BLANK, ...changes }, at: 5, withheld: [] });
    expect(read(text({}))).toBeDefined();
    for (const bad of [null, '', '{}', 'null', text({ env: [] }), text({ command: 7 }), JSON.stringify({ draft: { command: 'x' }, at: 5, withheld: [] })]) expect(read(bad), String(bad)).toBeUndefined();
  });
});
