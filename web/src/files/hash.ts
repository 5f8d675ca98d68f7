/** The name of a content: its BLAKE3 hash, computed piece by piece so that the page stays alive. */
import { blake3 } from '@noble/hashes/blake3.js';
import { bytesToHex } from '@noble/hashes/utils.js';

/** Bytes between two breaths. */
const PIECE = 1 << 20;

/** The hash of a file in hexadecimal; tells how far it is. */
export async function hashOf(file: Blob, progress?: (bytes: number) => void, signal?: AbortSignal): Promise<string> {
  const state = blake3.create({});
  for (let at = 0; at < file.size; at += PIECE) {
    signal?.throwIfAborted();
    state.update(new Uint8Array(await file.slice(at, at + PIECE).arrayBuffer()));
    progress?.(Math.min(file.size, at + PIECE));
  }
  return bytesToHex(state.digest());
}
