/** Announced absences of a node, as the server takes them: ahead, in order, none over another. Pure. */
export interface Window {
  from: string;
  to: string;
}

export type WindowProblem = 'incomplete' | 'backwards' | 'past' | 'overlaps';

/** Those that are not over. */
export function ahead(windows: readonly Window[], now: number): Window[] {
  return windows.filter(({ to }) => Date.parse(to) > now);
}

/** What is wrong with a further one. */
export function wrongWith(added: Window, windows: readonly Window[], now: number): WindowProblem | undefined {
  const [from, to] = [Date.parse(added.from), Date.parse(added.to)];
  if (Number.isNaN(from) || Number.isNaN(to)) return 'incomplete';
  if (to <= from) return 'backwards';
  if (to <= now) return 'past';
  const over = ahead(windows, now).some((other) => Date.parse(other.from) < to && from < Date.parse(other.to));
  return over ? 'overlaps' : undefined;
}

/** All that are to be announced, in order. */
export function withWindow(windows: readonly Window[], added: Window, now: number): Window[] {
  return [...ahead(windows, now), added].sort((a, b) => Date.parse(a.from) - Date.parse(b.from));
}

/** A moment as a field for local date and time wants it. */
export function localField(at: number): string {
  const when = new Date(at);
  const two = (part: number) => String(part).padStart(2, '0');
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}T${two(when.getHours())}:${two(when.getMinutes())}`;
}

/** What was written into such a field, as the wire has it; empty where it is no moment. */
export function fromField(written: string): string {
  const at = new Date(written).getTime();
  return Number.isNaN(at) ? '' : new Date(at).toISOString();
}
