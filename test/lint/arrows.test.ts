import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ESLint } from 'eslint';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const eslint = new ESLint({ cwd: root });

/** The messages of the arrow rule on a file that need not exist. */
async function arrowMessages(file: string, code: string): Promise<string[]> {
  const [result] = await eslint.lintText(code, { filePath: join(root, file) });
  const fatal = result.messages.filter((message) => message.fatal === true);
  expect(fatal).toEqual([]);
  return result.messages
    .filter((message) => message.ruleId === 'flashproof/arrows')
    .map((message) => `${message.severity}: ${message.message}`);
}

/** file, import, the start of the message. */
const forbidden: readonly (readonly [file: string, code: string, message: RegExp])[] = [
  [
    'oracles/attention/a.ts',
    "import { x } from '../../src/hardware/index.js';",
    /^2: oracles may not import hardware; it may import formats, arith, problem, request-error/,
  ],
  ['oracles/a.ts', "import { x } from '../kernels/index.js';", /oracles may not import kernels/],
  ['oracles/a.ts', "import type { X } from '../src/audit/index.js';", /may not import audit/],
  ['oracles/a.ts', "export * from '../src/io/index.js';", /oracles may not import io/],
  ['oracles/a.ts', "export { x } from '../src/cli/index.js';", /oracles may not import cli/],
  ['src/formats/a.ts', "import { x } from '../arith/index.js';", /formats may not import arith/],
  ['src/formats/a.ts', "const x = await import('../arith/index.js');", /may not import arith/],
  ['src/formats/a.ts', "let x: import('../arith/index.js').X;", /formats may not import arith/],
  ['src/formats/a.ts', "import x = require('../arith/index.js');", /formats may not import arith/],
  ['src/formats/a.ts', "import type { X } from '../problem/index.js';", /may not import problem/],
  ['src/arith/a.ts', "import type { X } from '../problem/index.js';", /may not import problem/],
  ['kernels/a.ts', "import { x } from '../src/audit/index.js';", /kernels may not import audit/],
  ['src/audit/a.ts', "import { x } from '../report/index.js';", /audit may not import report/],
  [
    'src/report/html/a.ts',
    "import { x } from '../svg/index.js';",
    /report\/html may not import report\/svg/,
  ],
  [
    'src/report/html/a.ts',
    "import { x } from '../json/warnings.js';",
    /import src\/report\/json\/index\.js/,
  ],
  ['src/hardware/a.ts', "import { x } from '../../oracles/index.js';", /may not import oracles/],
  [
    'src/problem/index.ts',
    "import { x } from '../arith/index.js';",
    /problem may not import arith/,
  ],
  ['src/problem/index.ts', "import { x } from '../index.js';", /problem may not import index/],
  ['src/request-error.ts', "import { x } from './formats/index.js';", /may not import formats/],
  ['src/io/a.ts', "import { x } from '../index.js';", /io may not import index/],
  [
    'src/audit/a.ts',
    "import { x } from '../formats/word-rounding.js';",
    /^2: import src\/formats\/index\.js, the public part of the folder, instead of src\/formats\/word-rounding\.js/,
  ],
  ['src/cli/a.ts', "import { x } from '../../oracles/attention/row.js';", /import oracles\/index/],
  [
    'src/problem/index.ts',
    "import { x } from '../formats/ulp.js';",
    /import src\/formats\/index\.js/,
  ],
  ['src/audit/a.ts', "import { x } from '../../test/exact.js';", /test\/exact\.js is no part/],
  ['kernels/a.ts', "import { x } from '../scripts/a.mjs';", /scripts\/a\.mjs is no part/],
  ['src/cli/a.ts', "import { x } from 'flashproof/oracles';", /instead of by the package name/],
  ['src/novelty/a.ts', 'export const x = 1;', /novelty has no arrows/],
  [
    'oracles/assembly/a.ts',
    "import { x } from '../../src/simd/assembly/b';",
    /oracles may not import simd/,
  ],
  [
    'src/audit/a.ts',
    "import { x } from '../../oracles/assembly/b.js';",
    /import oracles\/index\.js/,
  ],
];

const allowed: readonly (readonly [file: string, code: string])[] = [
  ['src/audit/assembly/a.ts', "import { x } from '../../../oracles/attention/assembly/b';"],
  ['src/audit/a.ts', "import { x } from '../../kernels/index.js';"],
  ['src/audit/a.ts', "import { x } from '../../oracles/index.js';"],
  ['src/audit/a.ts', "import { x } from './bound.js';"],
  ['oracles/attention/a.ts', "import { x } from '../fixed-point.js';"],
  ['oracles/attention/a.ts', "import { x } from '../../src/formats/index.js';"],
  ['src/formats/a.ts', "import type { Tensor } from './tensor.js';"],
  ['src/problem/index.ts', "import type { X } from '../formats/index.js';"],
  ['src/problem/index.ts', "import { RequestError } from '../request-error.js';"],
  ['src/report/html/a.ts', "import { x } from '../json/index.js';"],
  ['src/cli/a.ts', "import { x } from '../io/index.js';"],
  ['src/cli/a.ts', "import { readFileSync } from 'node:fs';"],
  ['src/cli/a.ts', "import { Command } from 'commander';"],
  ['src/index.ts', "export * from './audit/index.js';"],
  ['test/a.ts', "import { x } from '../src/formats/word-rounding.js';"],
];

describe('the arrows of dependence', () => {
  it.each(forbidden)('%s must not say %s', async (file, code, message) => {
    const messages = await arrowMessages(file, code);
    expect(messages).toHaveLength(1);
    expect(messages[0]).toMatch(message);
  });

  it.each(allowed)('%s may say %s', async (file, code) => {
    expect(await arrowMessages(file, code)).toEqual([]);
  });

  it('are laid down for every folder and file of src', async () => {
    const elements = readdirSync(join(root, 'src')).map((name) =>
      statSync(join(root, 'src', name)).isDirectory() ? `src/${name}/a.ts` : `src/${name}`,
    );
    for (const file of elements) expect(await arrowMessages(file, 'export {};')).toEqual([]);
  });
});
