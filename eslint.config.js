import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';
import { arrowRule } from './scripts/arrow-rule.mjs';
import { circleRule } from './scripts/circle-rule.mjs';
import { entriesRule } from './scripts/entries-rule.mjs';
import { sharpFaultRule } from './scripts/sharp-fault-rule.mjs';

/**
 * The arrows of dependence: each key may import only from itself, from the elements listed and from
 * the shared vocabulary. A key is a folder below src, of which the deepest that holds a file counts, or a
 * file directly below src.
 */
export const arrows = {
  'request-error': [],
  reuse: [],
  words: [],
  problem: ['formats'],
  formats: [],
  arith: ['formats'],
  simd: [],
  hardware: ['formats', 'arith', 'simd'],
  oracles: ['formats', 'arith', 'problem'],
  isa: ['isa/vectors', 'isa/webassembly', 'hardware', 'formats', 'arith'],
  'isa/vectors': ['isa/webassembly', 'hardware'],
  'isa/webassembly': [],
  machine: ['isa', 'hardware', 'formats', 'arith'],
  kernels: ['hardware', 'simd', 'arith', 'formats', 'machine', 'problem'],
  ptx: [],
  'ptx/syntax': [],
  'ptx/instructions': [
    'isa',
    'isa/vectors',
    'isa/webassembly',
    'hardware',
    'simd',
    'arith',
    'formats',
    'machine',
  ],
  'ptx/program': ['ptx/syntax', 'ptx/instructions', 'machine'],
  'ptx/compile': ['ptx/instructions', 'ptx/program', 'isa/vectors', 'isa/webassembly'],
  'ptx/launch': ['ptx/syntax', 'formats', 'problem'],
  'ptx/run': [
    ...['ptx/syntax', 'ptx/instructions', 'ptx/program', 'ptx/compile', 'ptx/launch'],
    ...['machine', 'hardware', 'formats'],
  ],
  'ptx/mutants': ['ptx/instructions', 'ptx/program', 'ptx/run', 'machine'],
  'ptx/explore': ['ptx/run', 'machine'],
  io: ['io/tensors', 'formats', 'problem'],
  'io/tensors': ['formats', 'problem'],
  live: ['io', 'problem'],
  audit: ['oracles', 'kernels', 'hardware', 'simd', 'formats', 'problem'],
  properties: ['oracles', 'kernels', 'audit', 'formats', 'arith', 'problem'],
  report: [],
  'report/layout': [],
  'report/json': ['audit', 'attribution', 'profile', 'formats', 'problem'],
  'report/json/check': ['report/json', 'properties'],
  'report/validation': [],
  'report/text': [
    ...['report/layout', 'report/json', 'report/json/check', 'audit', 'attribution'],
    ...['properties', 'conform', 'bench'],
    ...['formats', 'problem'],
  ],
  'report/text/attribution': ['report/layout', 'attribution', 'problem'],
  'report/text/machine': ['report/layout', 'jobs', 'kernels', 'machine'],
  'report/text/launch': ['report/layout', 'jobs', 'machine', 'ptx/mutants', 'formats'],
  'report/text/profile': ['report/layout', 'profile'],
  'report/junit': [
    'report/layout',
    'report/json',
    'report/json/check',
    'report/text',
    'audit',
    'problem',
  ],
  'report/html': ['report/layout', 'report/json', 'report/text', 'audit', 'attribution'],
  'report/svg': ['profile'],
  attribution: ['audit', 'kernels', 'oracles', 'formats', 'problem'],
  conform: ['hardware', 'kernels', 'simd', 'formats'],
  emulate: ['kernels', 'formats', 'problem'],
  bench: [
    ...['ptx/instructions', 'ptx/program', 'ptx/compile'],
    'io',
    'emulate',
    'audit',
    'oracles',
    'kernels',
    'hardware',
    'formats',
    'arith',
    'problem',
  ],
  profile: ['oracles', 'kernels', 'properties', 'hardware', 'formats', 'arith', 'simd', 'problem'],
  campaign: [
    'properties',
    'report/json',
    'report/json/check',
    'conform',
    'profile',
    'kernels',
    'hardware',
  ],
  'jobs/audit': [
    ...['report/json', 'report/html', 'audit', 'attribution', 'oracles', 'kernels'],
    ...['io/tensors', 'formats', 'problem'],
  ],
  jobs: [
    ...['jobs/audit', 'report/json', 'report/json/check', 'report/html', 'audit', 'attribution'],
    ...['properties', 'emulate', 'live', 'oracles', 'kernels', 'machine', 'io', 'formats'],
    ...['ptx/syntax', 'ptx/launch', 'ptx/run', 'ptx/mutants', 'ptx/explore', 'hardware'],
    'problem',
  ],
  browser: [
    ...['jobs/audit', 'report/html', 'report/json', 'io/tensors', 'audit', 'attribution'],
    ...['kernels', 'oracles', 'machine', 'formats', 'problem'],
  ],
  cli: [
    ...['jobs', 'report/text/launch'],
    ...['report/layout', 'report/json', 'report/json/check', 'report/validation', 'report/text'],
    'report/text/attribution',
    ...['report/text/machine', 'report/text/profile', 'report/junit', 'report/html', 'report/svg'],
    ...['io', 'live', 'audit', 'conform', 'bench', 'emulate', 'oracles', 'kernels', 'properties'],
    ...['attribution', 'profile', 'campaign', 'machine', 'hardware', 'formats', 'arith'],
    'problem',
  ],
  index: ['attribution', 'audit', 'formats', 'arith', 'problem', 'report/text/attribution'],
};
/** The vocabulary that every element may import. */
const shared = ['request-error', 'reuse', 'words'];
/** Elements that are folders of the root; the others lie in src. */
const rootFolders = ['oracles', 'kernels', 'properties'];

/** By folder the faults of its tests, of which each is seen by one test alone. */
const faultTables = {
  'src/audit/gradients': 'test/audit/sharp-faults/gradient-faults.ts',
  'src/audit': 'test/audit/sharp-faults/forward-faults.ts',
};

const root = import.meta.dirname;
const libraryFolders = ['src', ...rootFolders];

/** Syntax that no file has. */
const restrictedSyntax = [
  { selector: 'ExportDefaultDeclaration', message: 'Name every export.' },
  {
    selector: 'Program > VariableDeclaration[kind="let"]',
    message: 'No module state: pass it in, or hold it in a closure.',
  },
  {
    selector: 'ObjectExpression > SpreadElement > ObjectExpression',
    message: 'Write the members out: a spread literal is not checked for members too many.',
  },
];

export default defineConfig(
  {
    ignores: [
      ...['**/dist/**', 'dist-*/**', '**/*.generated.ts', 'examples/**'],
      ...['.stryker-tmp/**', '.vitest/**', 'reports/**'],
    ],
  },
  ...tseslint.configs.recommended,
  {
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      'no-restricted-syntax': ['error', ...restrictedSyntax],
      eqeqeq: 'error',
    },
  },
  {
    files: ['**/*.config.{js,ts}'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    files: libraryFolders.map((folder) => `${folder}/**/*.ts`),
    plugins: {
      flashproof: {
        rules: {
          arrows: arrowRule({ root, arrows, shared, rootFolders, packageName: 'flashproof' }),
          circles: circleRule({ root, folders: libraryFolders }),
          entries: entriesRule({ root, most: 25 }),
          'sharp-faults': sharpFaultRule({ root, tables: faultTables }),
        },
      },
    },
    rules: {
      'flashproof/arrows': 'error',
      'flashproof/circles': 'error',
      'flashproof/sharp-faults': 'error',
      'no-restricted-syntax': [
        'error',
        ...restrictedSyntax,
        {
          selector: 'TSNonNullExpression > MemberExpression[computed=true]',
          message: 'Give the record or array a type, or check: an assertion hides what is missing.',
        },
      ],
      'flashproof/entries': 'error',
      '@typescript-eslint/max-params': ['error', { max: 5 }],
    },
  },
  {
    // AssemblyScript has no imports of types. Beyond eight parameters a function takes a struct.
    files: ['**/assembly/*.ts'],
    rules: {
      '@typescript-eslint/consistent-type-imports': 'off',
      '@typescript-eslint/max-params': ['error', { max: 8 }],
    },
  },
);
