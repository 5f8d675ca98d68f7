/** Paths with names in them, `/jobs/:id`: a pure match, and the path for given names. */
export type Names = Readonly<Record<string, string>>;

/** The names that a path gives to a pattern, or nothing where it does not fit. */
export function match(pattern: string, path: string): Names | undefined {
  const [wanted, given] = [split(pattern), split(path)];
  if (wanted.length !== given.length) return undefined;
  const names: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const text = given[index] ?? '';
    if (part.startsWith(':')) {
      const read = decoded(text);
      if (read === undefined) return undefined;
      names[part.slice(1)] = read;
    } else if (part !== text) return undefined;
  }
  return names;
}

function split(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
