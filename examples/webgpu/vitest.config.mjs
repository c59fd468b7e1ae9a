import { defineConfig } from 'vitest/config';

// Its own, so that vitest looks for none in the folders above.
export default defineConfig({});
