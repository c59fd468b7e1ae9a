import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect } from 'vitest';
import { fa4Configuration, type Fa4Configuration } from '../../../../kernels/index.js';
import { attentionOracle } from '../../../../oracles/index.js';
import { encodeFromFloat64, formats, patternsOf } from '../../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../../src/problem/index.js';
import { casePaths, readCase } from '../../../audit/captured-cases.js';
import { sampled } from '../../../setup/effort.js';
import { turns } from '../../../setup/turns.js';
import { everything, nothing, runAttributed } from './run-attributed.js';

const inTurn = turns(import.meta.url);

interface CapturedForward {
  readonly settings: Readonly<Record<string, number>>;
  readonly sha256: Readonly<Record<string, string>>;
}

const file = new URL('../../../../fixtures/silicon/sm_90/fa4-forward.json', import.meta.url);
const captured = JSON.parse(readFileSync(file, 'utf8')) as Record<string, CapturedForward>;

/** The configuration of a captured case, with Hopper's tensor cores. */
function capturedConfiguration(problem: Problem, name: string): Fa4Configuration {
  const { settings } = captured[name.slice(0, 2)];
  const overrides = { architecture: 'sm_90' as const };
  const base = fa4Configuration(problem, problemShape(problem), overrides);
  return {
    ...base,
    exp2: {
      ...base.exp2,
      frequency: settings['exp2.frequency'],
      reserve: settings['exp2.reserve'],
      startFragment: settings['exp2.startFragment'],
    },
    rescaleThreshold: settings['rescale.threshold'],
  };
}

/** The kernels that were captured. */
const variants: Readonly<Record<string, (own: Fa4Configuration) => Fa4Configuration>> = {
  fa4: (own) => own,
  fa4_hwexp: (own) => ({ ...own, exp2: { ...own.exp2, frequency: 0 } }),
  fa4_alwaysrescale: (own) => ({ ...own, rescaleThreshold: 0 }),
};

/** Every captured case with each of the list, of which TEST_SEED draws some. */
function drawn<T>(list: readonly T[], count: number): (readonly [string, T, string])[] {
  const all = casePaths.flatMap((path) => list.map((one) => [basename(path), one, path] as const));
  return sampled(all, count);
}

describe('with every technique emulated', () => {
  inTurn.each(drawn(Object.keys(variants), 13))(
    '%s equals an H200 bit for bit: %s',
    async (name, variant, path) => {
      const { problem } = await readCase(path);
      const configuration = variants[variant](capturedConfiguration(problem, name));
      const [out] = runAttributed(problem, [everything], configuration).outputs;
      const format = formats[problem.q.format];
      const bits = patternsOf(encodeFromFloat64(format, out), format);
      const digest = createHash('sha256').update(bits).digest('hex');
      expect(digest).toBe(captured[name.slice(0, 2)].sha256[`${variant}.out`]);
    },
  );
});

describe('with none', () => {
  inTurn.each(drawn([null, 0, 32], 7))(
    '%s is exact attention, whatever the maximum does: threshold %s',
    async (name, threshold, path) => {
      const { problem } = await readCase(path);
      const configuration = capturedConfiguration(problem, name);
      const oracle = attentionOracle(problem);
      const rescaleThreshold = threshold ?? configuration.rescaleThreshold;
      const overrides = { ...configuration, rescaleThreshold };
      const { outputs, rowSums, maxima } = runAttributed(problem, [nothing], overrides);
      let worst = 0;
      outputs[0].forEach((x, i) => {
        worst = Math.max(
          worst,
          Math.abs(x - oracle.quantities.out.values[i]) / oracle.quantities.out.magnitude[i],
        );
      });
      expect(worst).toBeLessThan(1e-13);
      oracle.quantities.lse.values.forEach((lse, row) => {
        const error = maxima[row] * problem.scale + Math.log(rowSums[0][row]) - lse;
        expect(Math.abs(error)).toBeLessThan(1e-12 * Math.max(1, Math.abs(lse)));
      });
    },
  );
});
