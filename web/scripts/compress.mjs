// Lays a brotli and a gzip copy beside every file of the built page that gains by it, so that the
// server only has to hand out bytes.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const folder = process.argv[2] ?? 'dist';
const gains = /\.(html|js|css|svg|json|txt)$/;
/** What is smaller than this fits into one packet anyway. */
const LEAST_BYTES = 512;

const files = readdirSync(folder, { recursive: true }).map(String).filter((name) => gains.test(name));
for (const name of files) {
  const path = join(folder, name);
  if (statSync(path).size < LEAST_BYTES) continue;
  const bytes = readFileSync(path);
  const brotli = brotliCompressSync(bytes, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
  writeFileSync(`${path}.br`, brotli);
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
}
