import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';
import { arrowRule } from './scripts/arrow-rule.mjs';

/**
 * The arrows of dependence: each key may import only from itself, from the elements listed and from
 * the shared vocabulary. A key is a folder below src, of which the deepest that holds a file counts, or a
 * file directly below src.
 */
export const arrows = {
  'request-error': [],
  lazily: [],
  words: [],
  problem: ['formats'],
  formats: [],
  arith: ['formats'],
  simd: [],
  hardware: ['formats', 'arith', 'simd'],
  oracles: ['formats', 'arith'],
  machine: ['hardware', 'formats', 'arith'],
  kernels: ['hardware', 'simd', 'arith', 'formats', 'machine'],
  io: ['formats'],
  live: ['io'],
  audit: ['oracles', 'kernels', 'hardware', 'simd', 'formats'],
  properties: ['oracles', 'kernels', 'audit', 'formats', 'arith'],
  report: [],
  'report/layout': [],
  'report/json': ['audit', 'attribution', 'properties', 'profile', 'formats'],
  'report/text': [
    ...['report/layout', 'report/json', 'audit', 'attribution', 'properties', 'conform', 'bench'],
    'formats',
  ],
  'report/text/attribution': ['report/layout', 'attribution'],
  'report/text/profile': ['report/layout', 'profile'],
  'report/junit': ['report/layout', 'report/json', 'report/text', 'audit'],
  'report/html': ['report/layout', 'report/json', 'report/text', 'audit', 'attribution'],
  'report/svg': ['profile'],
  attribution: ['audit', 'kernels', 'oracles', 'formats'],
  conform: ['hardware', 'kernels', 'simd', 'formats'],
  emulate: ['kernels', 'formats'],
  bench: ['io', 'emulate', 'audit', 'oracles', 'kernels', 'hardware', 'formats', 'arith'],
  profile: ['oracles', 'kernels', 'properties', 'hardware', 'formats', 'arith', 'simd'],
  campaign: ['properties', 'report/json', 'conform', 'profile', 'kernels', 'hardware'],
  cli: [
    ...['report/layout', 'report/json', 'report/text', 'report/text/attribution'],
    ...['report/text/profile', 'report/junit', 'report/html', 'report/svg'],
    ...['io', 'live', 'audit', 'conform', 'bench', 'emulate', 'oracles', 'kernels', 'properties'],
    ...['attribution', 'profile', 'campaign', 'machine', 'hardware', 'formats', 'arith'],
  ],
  index: ['attribution', 'audit', 'formats', 'arith', 'report/text/attribution'],
};
/** The vocabulary that every element may import. */
const shared = ['problem', 'request-error', 'lazily', 'words'];
/** Elements that are folders of the root; the others lie in src. */
const rootFolders = ['oracles', 'kernels', 'properties'];

const root = import.meta.dirname;

export default defineConfig(
  {
    ignores: [
      ...['dist/**', 'dist-*/**', '**/*.generated.ts', '**/assembly/**', 'examples/**'],
      ...['.stryker-tmp/**', 'reports/**'],
    ],
  },
  ...tseslint.configs.recommended,
  {
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      'no-restricted-syntax': [
        'error',
        { selector: 'ExportDefaultDeclaration', message: 'Name every export.' },
        {
          selector: 'Program > VariableDeclaration[kind="let"]',
          message: 'No module state: pass it in, or hold it in a closure.',
        },
        {
          selector: 'ObjectExpression > SpreadElement > ObjectExpression',
          message: 'Write the members out: a spread literal is not checked for members too many.',
        },
      ],
      eqeqeq: 'error',
    },
  },
  {
    files: ['*.config.{js,ts}'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    files: ['src/**/*.ts', ...rootFolders.map((folder) => `${folder}/**/*.ts`)],
    plugins: {
      flashproof: {
        rules: {
          arrows: arrowRule({ root, arrows, shared, rootFolders, packageName: 'flashproof' }),
        },
      },
    },
    rules: { 'flashproof/arrows': 'error' },
  },
);
