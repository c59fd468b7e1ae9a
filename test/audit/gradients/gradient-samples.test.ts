import { describe, expect, it } from 'vitest';
import { auditGradients, chooseKeys, chooseRows } from '../../../src/audit/index.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../src/formats/index.js';
import { problemShape } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { featureProblems, normalProblem, seededRandom } from '../../kernels/features/index.js';
import { backwardKernel, drawDout } from '../../kernels/gradients/index.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const problem = {
  ...normalProblem(seededRandom(testSeed), {
    batch: 2,
    heads: 4,
    kvHeads: 2,
    queries: 70,
    keys: 80,
    dim: 16,
    vDim: 16,
  }),
  causal: true,
};
const shape = problemShape(problem);
const dout = drawDout(seededRandom(testSeed + 1), problem);
const given = { dout, ...backwardKernel()(problem, dout) };
const rows = { rows: 8 * 20, seed: 3 };
const keys = { keys: 4 * 10, seed: 3 };

/** A tensor with one number changed. */
function changed(tensor: Tensor, at: number): Tensor {
  const values = decodeTensor(tensor);
  values[at] += 3;
  return { ...tensor, data: encodeFromFloat64(formats[tensor.format], values) };
}

describe('samples of rows and of keys', () => {
  it('judge dQ of the rows, and dK and dV of the keys, and say what not', () => {
    const { verdict, gradients, samples } = auditGradients(problem, given, { rows, keys });
    expect(verdict.sentence).toMatch(/^PASS: dQ, dK and dV stay within/);
    expect(samples).toMatchObject({
      rows: { rows: 160, of: 560 },
      keys: { keys: 40, of: 320, edges: 8, random: 32 },
    });
    expect(gradients.map(({ elements }) => elements.elements)).toEqual([2560, 640, 640]);
    expect(verdict.notJudged).toEqual(
      expect.arrayContaining([
        'dQ of 400 of 560 rows, which are not in the sample',
        'dK and dV of 280 of 320 keys, which are not in the sample',
      ]),
    );
    const alone = auditGradients(problem, given, { rows });
    expect(alone.gradients.map(({ quantity }) => quantity.name)).toEqual(['dq']);
    expect(alone.verdict.notJudged).toContain(
      'dK and dV, since a sample of rows judges dQ, and one of keys dK and dV',
    );
  });

  inTurn('have the exact values and the bounds of the whole', () => {
    const all = auditGradients(problem, given).gradients;
    const some = auditGradients(problem, given, { rows, keys }).gradients;
    const places = [
      chooseRows(problem, shape, rows)!.selection.queries,
      ...Array<Int32Array>(2).fill(chooseKeys(problem, shape, keys)!.selection),
    ];
    some.forEach(({ values, error, elements }, i) => {
      const heads = i === 0 ? 8 : 4;
      const columns = 16;
      const ofHead = places[i].length / heads;
      const rowsOfHead = all[i].values.length / columns / heads;
      places[i].forEach((row, at) => {
        const from = (Math.floor(at / ofHead) * rowsOfHead + row) * columns;
        expect(values.slice(at * columns, (at + 1) * columns)).toEqual(
          all[i].values.slice(from, from + columns),
        );
      });
      expect(elements.worstRatio).toBeLessThanOrEqual(all[i].elements.worstRatio * (1 + 1e-6));
      expect(error.absolute.max).toBeLessThanOrEqual(all[i].error.absolute.max * (1 + 1e-6));
    });
  });

  inTurn('find what is in them, at its place in the whole, and nothing else', () => {
    const { selection } = chooseKeys(problem, shape, keys)!;
    const rowOf = chooseRows(problem, shape, rows)!.selection.queries;
    // Head 1 of batch entry 1 of K, and head 2 of batch entry 1 of Q.
    const [key, query] = [selection[3 * 10 + 4], rowOf[6 * 20 + 7]];
    const dk = changed(given.dk, (3 * 80 + key) * 16 + 5);
    const ofKeys = auditGradients(problem, { ...given, dk }, { keys });
    expect(ofKeys.verdict.findings.map(({ statement }) => statement)).toContainEqual(
      expect.stringMatching(
        new RegExp(`^1 of 640 elements of dK err .* batch 1, head 1, key ${key}, column 5$`),
      ),
    );
    const dq = changed(given.dq, (6 * 70 + query) * 16 + 9);
    const ofRows = auditGradients(problem, { ...given, dq }, { rows });
    expect(ofRows.verdict.findings.map(({ statement }) => statement)).toContainEqual(
      expect.stringMatching(
        new RegExp(`^1 of 2560 elements of dQ err .* batch 1, head 2, query ${query}, column 9$`),
      ),
    );
    const others = Array.from({ length: 80 }, (_, i) => i).filter(
      (i) => !selection.subarray(30, 40).includes(i),
    );
    const unseen = { ...given, dk: changed(given.dk, (3 * 80 + others[7]) * 16) };
    expect(auditGradients(problem, unseen, { keys }).verdict.pass).toBe(true);
    expect(auditGradients(problem, unseen).verdict.pass).toBe(false);
  });

  inTurn('fail by what is wrong in either of them', () => {
    const { selection } = chooseKeys(problem, shape, keys)!;
    const rowOf = chooseRows(problem, shape, rows)!.selection.queries;
    const wrong = {
      dq: changed(given.dq, (6 * 70 + rowOf[6 * 20 + 7]) * 16 + 9),
      dk: changed(given.dk, (3 * 80 + selection[3 * 10 + 4]) * 16 + 5),
    };
    for (const [name, tensor] of Object.entries(wrong)) {
      const outputs = { ...given, [name]: tensor };
      const { verdict } = auditGradients(problem, outputs, { rows, keys, diagnose: false });
      expect(verdict.pass).toBe(false);
      expect(verdict.findings.map(({ test }) => test)).toContain(`${name}-bound`);
    }
  });

  inTurn('name a factor, and look for nothing else', () => {
    const scaled = decodeTensor(given.dk).map((x) => x / problem.scale);
    const dk = { ...given.dk, data: encodeFromFloat64(formats[given.dk.format], scaled) };
    const { verdict } = auditGradients(problem, { ...given, dk }, { keys });
    expect(verdict.diagnosis).toMatchObject({
      id: 'scale-missing',
      evidence: ['of a sample factors alone are tried: other causes take all rows and keys'],
    });
  });

  inTurn('are of packed sequences too', () => {
    const packed = featureProblems['packed sequences with a bias and a sink'](
      seededRandom(testSeed),
    );
    const gradient = drawDout(seededRandom(testSeed + 1), packed);
    const { heads, kvHeads } = problemShape(packed);
    const { verdict } = auditGradients(
      packed,
      { dout: gradient, ...backwardKernel()(packed, gradient) },
      { rows: { rows: 30 * heads, seed: 1 }, keys: { keys: 20 * kvHeads, seed: 1 } },
    );
    expect(verdict.sentence).toMatch(/^PASS: dQ, dK and dV/);
    expect(verdict.notJudged[0]).toBe(
      'dBias and dSink, since a sample of rows judges dQ, and one of keys dK and dV',
    );
  });

  it('are refused where they are fewer than heads, and where nothing given is of them', () => {
    const few = { keys: 3, seed: 1 };
    expect(() => auditGradients(problem, given, { keys: few })).toThrow(
      '3 keys are fewer than the 4 heads of K; judge 4 at least, one of each',
    );
    expect(() => auditGradients(problem, { dout, dk: given.dk }, { rows })).toThrow(
      /^a sample of rows judges dQ, and a sample of keys dK and dV, but of these none was given/,
    );
  });
});
