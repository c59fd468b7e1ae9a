import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/setup/build-once.ts'],
    testTimeout: 60_000,
    // A hook may build dist (test/setup/built-dist.ts).
    hookTimeout: 180_000,
  },
});
