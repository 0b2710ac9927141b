// Unit tests of the page's arithmetic, in Node.
import { defineConfig } from 'vitest/config';

export default defineConfig({ test: { include: ['unit/**/*.test.ts'], environment: 'node', testTimeout: 60000 } });
