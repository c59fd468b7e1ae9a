import boundaries from 'eslint-plugin-boundaries';
import tseslint from 'typescript-eslint';

/**
 * The arrows of dependence between folders: each key may import only from itself and the folders
 * listed. `problem` and `request-error` are the shared vocabulary that every folder may use.
 */
const arrows = {
  formats: [],
  arith: ['formats'],
  simd: [],
  hardware: ['formats', 'arith', 'simd'],
  oracles: ['formats', 'arith'],
  machine: ['hardware', 'formats', 'arith'],
  kernels: ['hardware', 'arith', 'formats', 'machine'],
  io: ['formats'],
  audit: ['oracles', 'kernels', 'formats', 'arith'],
  properties: ['oracles', 'kernels', 'audit', 'formats', 'arith'],
  report: ['audit', 'formats'],
  cli: ['io', 'audit', 'report', 'oracles', 'kernels', 'properties', 'hardware', 'formats', 'arith'],
};
const vocabulary = ['problem', 'request-error'];

export default tseslint.config(
  { ignores: ['dist/**', '**/*.generated.ts', '**/assembly/**', 'examples/**'] },
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
      ],
      eqeqeq: 'error',
    },
  },
  {
    files: ['*.config.{js,ts}'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    files: ['src/**/*.ts', 'oracles/**/*.ts', 'kernels/**/*.ts', 'properties/**/*.ts'],
    plugins: { boundaries },
    settings: {
      'import/resolver': { typescript: { alwaysTryTypes: true } },
      'boundaries/elements': [
        ...['formats', 'arith', 'simd', 'hardware', 'machine', 'io', 'audit', 'report', 'cli'].map(
          (name) => ({ type: name, pattern: `src/${name}` }),
        ),
        ...['oracles', 'kernels', 'properties'].map((name) => ({ type: name, pattern: name })),
        ...vocabulary.map((name) => ({ type: name, pattern: `src/${name}.ts`, mode: 'full' })),
        { type: 'entry', pattern: 'src/index.ts', mode: 'full' },
      ],
    },
    rules: {
      'boundaries/no-unknown-files': 'error',
    },
  },
);

export { arrows };
