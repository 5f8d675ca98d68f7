import { describe, expect, it } from 'vitest';
import { fit, matching, type Command } from './commands';

const command = (label: string, words?: string): Command => ({ id: label, label, group: '', run: () => {}, ...(words && { words }) });

describe('the command palette', () => {
  it('puts what begins so before what contains it, and letters in order last', () => {
    const all = ['Cluster map', 'New job', 'Jobs', 'Object list'].map((label) => command(label));
    expect(matching('job', all).map(({ label }) => label)).toEqual(['Jobs', 'New job']);
    expect(matching('nj', all).map(({ label }) => label)).toEqual(['New job']);
  });

  it('finds a page by its other words, behind those that are called so', () => {
    const all = [command('Wallet', 'credits money'), command('Credits granted')];
    expect(matching('credits', all).map(({ label }) => label)).toEqual(['Credits granted', 'Wallet']);
  });

  it('offers everything to an empty text and nothing to nonsense', () => {
    expect(matching('', [command('a'), command('b')])).toHaveLength(2);
    expect(fit('zzz', 'Jobs')).toBeUndefined();
  });
});
