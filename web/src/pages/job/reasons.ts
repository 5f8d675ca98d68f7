/** Why credits moved, in words; what no word is known for stays as the server calls it. */
import { words } from '../../text';
import en from '../../text/en/job';
import zh from '../../text/zh/job';

const t = words(en, zh);

export function reasonText(code: string): string {
  const key = `reason_${code}`;
  return key in en ? String((t as Record<string, unknown>)[key]) : code;
}
