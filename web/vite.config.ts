/// <reference types="vitest/config" />
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

/** Where `era up` answers while pages are written; see README.md. */
const server = process.env.ERA_URL ?? 'http://127.0.0.1:7632';

const proxy = { '/api': { target: server, ws: true, changeOrigin: false } };

export default defineConfig({
  plugins: [svelte()],
  build: {
    // `light-dark()` and container queries, as they are: what older browsers lack is not rebuilt.
    target: ['chrome123', 'firefox121', 'safari17.5'],
    // Everything is a file of its own: the page's policy allows no `data:` scripts or styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 400,
  },
  server: { proxy },
  preview: { proxy },
  test: { include: ['{src,scripts}/**/*.test.ts'], environment: 'node', reporters: ['default', './tests/skipped.ts'] },
});
