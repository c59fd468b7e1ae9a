import { expect } from 'vitest';
import {
  anyGradientPremises,
  measureGradients,
  type GradientQuantityName,
} from '../../../src/audit/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { readCapturedGradients } from '../../fixtures/captured-gradients.js';
import { readGradientsManifest } from '../../fixtures/gradients-manifest.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** With TIGHTNESS all captured files are measured, and medians over files printed. */
const isTable = process.env['TIGHTNESS'] !== undefined;
const names: readonly GradientQuantityName[] = ['dq', 'dk', 'dv'];

/** Of a kernel's gradient of a file. */
interface Tightness {
  readonly file: string;
  readonly kernel: string;
  readonly name: GradientQuantityName;
  /** The largest bound over the largest error, and the root mean square that is expected over the one found. */
  readonly worst: number;
  readonly expected: number;
}

/** How close bounds of any correct kernel come to what kernels gave. */
async function measureTightness(file: string): Promise<Tightness[]> {
  const { problem, dout, kernels } = await readCapturedGradients(file);
  const { gradients } = measureGradients(problem, dout, {
    premises: anyGradientPremises(problem, problem.q.format),
    given: { out: null, lse: null },
  });
  return Object.entries(kernels).flatMap(([kernel, given]) =>
    names.map((name) => {
      const { exact, bound } = gradients[name];
      let [largestBound, largestError, squares, expected] = [0, 0, 0, 0];
      decodeTensor(given[name]).forEach((x, i) => {
        if (bound.total[i] === Infinity) return;
        const error = Math.abs(x - exact.values[i]);
        largestBound = Math.max(largestBound, bound.total[i]);
        largestError = Math.max(largestError, error);
        squares += error ** 2;
        expected += bound.deviation[i] ** 2;
      });
      const worst = largestBound / largestError;
      return { file, kernel, name, worst, expected: Math.sqrt(expected / squares) };
    }),
  );
}

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[values.length >> 1];

inTurn(
  'bounds of gradients are close to what kernels gave',
  async () => {
    const { files } = readGradientsManifest();
    const chosen = files
      .map(({ name }) => name)
      .filter((name) => isTable || /^(normal-128|plain-fp32)\./.test(name));
    const found: Tightness[] = [];
    for (const name of chosen) found.push(...(await measureTightness(name)));
    const groupOf = ({ file, kernel }: Tightness) =>
      `${/fp32|softcap/.exec(file)?.[0] ?? '16 bits'} ${kernel}`;
    for (const group of isTable ? new Set(found.map(groupOf)) : [])
      for (const name of names) {
        const of = found.filter((one) => groupOf(one) === group && one.name === name);
        const worst = median(of.map((one) => one.worst)).toFixed(1);
        const expected = median(of.map((one) => one.expected)).toFixed(2);
        console.info(`@ ${group} | ${name} | ${worst} | ${expected} | ${of.length} files`);
      }
    for (const { file, kernel, worst, expected } of found) {
      const isShort = !file.startsWith('plain-fp32') && !file.startsWith('softcap');
      // Never less than what was found, by chance aside; and as docs/theory/tightness.md says how much more.
      expect(expected, `${file} ${kernel}`).toBeGreaterThan(0.9);
      if (chosen.length > 2) continue;
      expect(worst, `${file} ${kernel}`).toBeLessThan(isShort ? 15 : 1000);
      expect(expected, `${file} ${kernel}`).toBeLessThan(isShort ? 2.1 : 18);
    }
  },
  600_000,
);
