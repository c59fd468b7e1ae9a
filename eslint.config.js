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
  meaning: [],
  'meaning/trace': ['ptx/program', 'ptx/run', 'formats'],
  'meaning/rules': ['meaning/trace', 'isa', 'oracles', 'arith'],
  'meaning/record': ['meaning/trace', 'meaning/rules', 'ptx/program', 'ptx/run', 'machine', 'isa'],
  'meaning/domains': ['meaning/trace', 'meaning/rules', 'arith'],
  'meaning/certify': ['meaning/trace', 'meaning/record', 'meaning/domains', 'machine'],
  'meaning/contracts': ['oracles', 'formats', 'arith', 'problem'],
  'meaning/recurrent': ['meaning/contracts', 'formats', 'arith', 'problem'],
  'meaning/gradients': ['meaning/contracts', 'oracles', 'formats', 'arith', 'problem'],
  io: ['io/tensors', 'formats', 'problem'],
  'io/tensors': ['formats', 'problem'],
  'io/live': ['io', 'problem'],
  audit: ['oracles', 'kernels', 'hardware', 'simd', 'formats', 'problem'],
  properties: ['oracles', 'kernels', 'audit', 'formats', 'arith', 'problem'],
  report: [],
  'report/layout': [],
  'report/json': ['audit', 'attribution', 'profile', 'formats', 'problem'],
  'report/json/check': ['report/json', 'properties', 'problem'],
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
  'report/html/launch': ['report/layout', 'report/html', 'report/text/launch', 'jobs'],
  'report/svg': ['profile'],
  attribution: ['audit', 'kernels', 'oracles', 'formats', 'problem'],
  conform: ['hardware', 'kernels', 'simd', 'formats'],
  emulate: ['kernels', 'formats', 'problem'],
  bench: [
    ...['ptx/instructions', 'ptx/program', 'ptx/compile'],
    'properties',
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
    ...['properties', 'emulate', 'io/live', 'oracles', 'kernels', 'machine', 'io', 'formats'],
    ...['ptx/syntax', 'ptx/launch', 'ptx/run', 'ptx/mutants', 'ptx/explore', 'hardware'],
    ...['meaning/trace', 'meaning/record', 'meaning/domains', 'meaning/certify'],
    ...['meaning/contracts', 'meaning/gradients', 'meaning/recurrent', 'problem'],
  ],
  browser: [
    ...[
      'jobs/audit',
      'report/html',
      'report/layout',
      'report/json',
      'io/tensors',
      'audit',
      'attribution',
    ],
    ...['kernels', 'oracles', 'machine', 'formats', 'problem'],
  ],
  cli: [
    ...['jobs', 'report/text/launch', 'report/html/launch'],
    ...['report/layout', 'report/json', 'report/json/check', 'report/validation', 'report/text'],
    'report/text/attribution',
    ...['report/text/machine', 'report/text/profile', 'report/junit', 'report/html', 'report/svg'],
    ...[
      'io',
      'io/live',
      'audit',
      'conform',
      'bench',
      'emulate',
      'oracles',
      'kernels',
      'properties',
    ],
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
  'src/audit/recurrent': 'test/audit/sharp-faults/recurrent-faults.ts',
  'src/audit': 'test/audit/sharp-faults/forward-faults.ts',
};

/**
 * Files with functions that are still longer than 60 lines of code. The list only gets shorter: whoever splits the
 * last long function of a file takes the file out.
 */
const filesWithLongFunctions = [
  'kernels/online-softmax/attributed/attributed-tile.ts',
  'oracles/attention/arbitrary-level.ts',
  'oracles/attention/attention.ts',
  'oracles/attention/double-double-level.ts',
  'oracles/attention/operand.ts',
  'oracles/attention/weight-tiles.ts',
  'oracles/gradients/exact-row.ts',
  'oracles/gradients/head-level.ts',
  'properties/laws/score-range.ts',
  'properties/problems/resolve-constraints.ts',
  'properties/suite/find-counterexample.ts',
  'properties/suite/run-case.ts',
  'src/attribution/technique-table.ts',
  'src/audit/bounds/bound-rows.ts',
  'src/audit/bounds/coarse/coarse-row.ts',
  'src/audit/bounds/coarse/uncertain-scores.ts',
  'src/audit/bounds/finish/finish-row.ts',
  'src/audit/bounds/key-extents.ts',
  'src/audit/bounds/norm-bound.ts',
  'src/audit/bounds/row-plan.ts',
  'src/audit/bounds/score-tiles.ts',
  'src/audit/bounds/weigh-tiles.ts',
  'src/audit/conduct/described-contract.ts',
  'src/audit/diagnosis/hypotheses/online-softmax-faults.ts',
  'src/audit/diagnosis/hypotheses/page-faults.ts',
  'src/audit/diagnosis/hypotheses/placement-faults.ts',
  'src/audit/diagnosis/measure-agreement.ts',
  'src/audit/error-profile.ts',
  'src/audit/gradients/bounds/err-pairs.ts',
  'src/audit/gradients/bounds/finish-gradient.ts',
  'src/audit/gradients/bounds/group-sums.ts',
  'src/audit/gradients/bounds/lse-errors.ts',
  'src/audit/gradients/bounds/pair-sums.ts',
  'src/audit/gradients/bounds/row-errors.ts',
  'src/audit/gradients/bounds/score-shares.ts',
  'src/audit/gradients/bounds/weigh-pairs.ts',
  'src/audit/gradients/diagnosis/replay/backward-row.ts',
  'src/audit/gradients/diagnosis/statistics/delta-laws.ts',
  'src/audit/gradients/structure/gradient-structure.ts',
  'src/audit/number-test.ts',
  'src/audit/outputs/output-contract.ts',
  'src/audit/premises/declared-row.ts',
  'src/audit/premises/resolve-premises.ts',
  'src/audit/spread-test.ts',
  'src/audit/structure/measure-structure.ts',
  'src/audit/structure/row-collector.ts',
  'src/cli/bound/run.ts',
  'src/cli/emulate/run-machine.ts',
  'src/io/tensors/npy/python-literal.ts',
  'src/io/tensors/read-tensors.ts',
  'src/jobs/audit/audit-kernel.ts',
  'src/io/live/kernel-process.ts',
  'src/profile/accumulate-engine.ts',
  'src/profile/error-slice.ts',
  'src/profile/techniques/split.ts',
  'src/ptx/instructions/warp/sparse-mma.ts',
  'src/report/html/comparison.ts',
  'src/report/html/technique-bars.ts',
];

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
      'max-lines-per-function': [
        'error',
        { max: 60, skipBlankLines: true, skipComments: true, IIFEs: true },
      ],
    },
  },
  {
    files: filesWithLongFunctions,
    rules: { 'max-lines-per-function': 'off' },
  },
  {
    // AssemblyScript has no imports of types. Beyond eight parameters a function takes a struct. Its loops are whole:
    // their sums stay in registers, which a call between parts would spill.
    files: ['**/assembly/*.ts'],
    rules: {
      'max-lines-per-function': 'off',
      '@typescript-eslint/consistent-type-imports': 'off',
      '@typescript-eslint/max-params': ['error', { max: 8 }],
    },
  },
);
