import { describe, expect, it } from 'vitest';
import { narrowFaults } from '../../../../src/audit/gradients/diagnosis/narrow-sums/narrow-faults.js';
import { gradientTerms } from '../../../../src/audit/gradients/diagnosis/narrow-sums/gradient-terms.js';
import { decodeTensor, formats, round } from '../../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../../src/problem/index.js';
import { lazily } from '../../../../src/reuse.js';
import { testSeed } from '../../../setup/effort.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { bellShaped, gradientCase, roundedGradients } from '../gradient-case.js';
import { replayedOf } from './failed-case.js';
import type { Named } from './bare-failure.js';

const random = bellShaped(1 + (testSeed % 1_000_003));
const bf16 = (x: number) => round(formats.bf16, x);
const [queries, dim] = [78, 8] as const;
const prose = { dq: 'dQ', dk: 'dK', dv: 'dV' } as const;

/** The factors of a gradient and the rows of the operand that they multiply, by the textbook: [head, row, member, place]. */
function textbook(problem: Problem, dout: Float64Array, name: Named) {
  const { heads, groupSize, queries, keys } = problemShape(problem);
  const [q, k, v] = [problem.q, problem.k, problem.v].map((one) => decodeTensor(one));
  const dot = (a: Float64Array, i: number, b: Float64Array, j: number) => {
    let sum = 0;
    for (let c = 0; c < dim; c++) sum += a[i * dim + c] * b[j * dim + c];
    return sum;
  };
  const ps = new Float64Array(heads * queries * keys);
  const dss = new Float64Array(heads * queries * keys);
  for (let head = 0; head < heads; head++)
    for (let query = 0; query < queries; query++) {
      const row = head * queries + query;
      const seen = Array.from({ length: keys }, (_, key) => key).filter(
        (key) => !problem.causal || key <= query + keys - queries,
      );
      const at = (key: number) => Math.floor(head / groupSize) * keys + key;
      const weights = seen.map((key) => Math.exp(problem.scale * dot(q, row, k, at(key))));
      const sum = weights.reduce((a, b) => a + b, 0);
      const slopes = seen.map((key) => dot(dout, row, v, at(key)));
      const mean = weights.reduce((all, w, i) => all + (w / sum) * slopes[i], 0);
      seen.forEach((key, i) => {
        ps[row * keys + key] = weights[i] / sum;
        dss[row * keys + key] = (weights[i] / sum) * (slopes[i] - mean);
      });
    }
  const operand = { dq: k, dk: q, dv: dout }[name];
  return {
    members: name === 'dq' ? 1 : groupSize,
    places: name === 'dq' ? keys : queries,
    termOf: (head: number, row: number, member: number, place: number) => {
      const of = name === 'dq' ? head : head * groupSize + member;
      const [query, key] = name === 'dq' ? [row, place] : [place, row];
      const factor = (name === 'dv' ? ps : dss)[(of * queries + query) * keys + key];
      const first =
        name === 'dq' ? Math.floor(head / groupSize) * keys + place : of * queries + place;
      return { factor: bf16(factor), from: first * dim, operand };
    },
  };
}

/** A gradient that is rounded to bf16 after every addition, from the first to the last. */
function summed(problem: Problem, dout: Float64Array, name: Named) {
  const { heads, kvHeads, queries, keys } = problemShape(problem);
  const { members, places, termOf } = textbook(problem, dout, name);
  const [count, rows] = name === 'dq' ? [heads, queries] : [kvHeads, keys];
  const values = new Float64Array(count * rows * dim);
  for (let head = 0; head < count; head++)
    for (let row = 0; row < rows; row++)
      for (let c = 0; c < dim; c++) {
        let sum = 0;
        for (let member = 0; member < members; member++)
          for (let place = 0; place < places; place++) {
            const { factor, from, operand } = termOf(head, row, member, place);
            sum = bf16(sum + factor * operand[from + c]);
          }
        values[(head * rows + row) * dim + c] = bf16(sum * (name === 'dv' ? 1 : problem.scale));
      }
  return values;
}

/** More queries than a tile of rows has, of heads that share keys. */
function drawn(causal: boolean) {
  const frame = { heads: 2, kvHeads: 1, queries, keys: 32, dim };
  const problem = filledProblem(frame, random, { causal });
  const dout = tensor('bf16', [1, 2, queries, dim], random);
  return { one: gradientCase(problem, dout), dout: decodeTensor(dout), problem };
}

const plain = lazily(() => drawn(false));
const masked = lazily(() => {
  const { one, dout, problem } = drawn(true);
  const zero = (name: Named) => one.exact[name].map(() => 0);
  const zeros = { dq: zero('dq'), dk: zero('dk'), dv: zero('dv') };
  return { of: replayedOf(problem, roundedGradients(one, zeros))!, dout, problem };
});

describe('a gradient that is summed in 16 bits', () => {
  it.each<Named>(['dq', 'dv'])('is what it is by the textbook, in every row: %s', (name) => {
    const { one, dout, problem } = plain();
    const made = summed(problem, dout, name);
    const of = replayedOf(problem, roundedGradients(one, { ...one.exact, [name]: made }))!;
    const [found, ...others] = narrowFaults(of);
    expect(others).toEqual([]);
    expect(found.sentence).toBe(
      `${prose[name]} is added up in bf16, rounded after every addition, from the first to the last`,
    );
    const predicted = found.predicted[name]!;
    const alike = made.filter((x, i) => bf16(predicted[i]) === x).length;
    // A factor near a tie may be rounded the other way.
    expect(alike).toBeGreaterThan(0.98 * made.length);
    expect(found.wider![name]!.total.every((x) => x >= 0)).toBe(true);
  });

  it.each<Named>(['dq', 'dk', 'dv'])('has the terms of the textbook in some rows: %s', (name) => {
    const { of, dout, problem } = masked();
    const [begin, end] = name === 'dq' ? [37, 66] : [7, 29];
    const at = { head: name === 'dq' ? 1 : 0, begin, end };
    const given = of.failed.given.find(({ quantity }) => quantity.name === name)!;
    const found = gradientTerms(of, given, at);
    const { members, places, termOf } = textbook(problem, dout, name);
    expect(found).toMatchObject({ rows: end - begin, heads: members, places, columns: dim });
    const wrong: (readonly number[])[] = [];
    for (let row = 0; row < end - begin; row++)
      for (let member = 0; member < members; member++)
        for (let place = 0; place < places; place++) {
          const term = member * places + place;
          const wanted = termOf(at.head, begin + row, member, place);
          const factor = found.factors[row * members * places + term];
          const isFactor =
            Math.abs(factor - wanted.factor) <= 2 ** -7 * Math.abs(wanted.factor) + 2 ** -40;
          const isOperand =
            found.offsets[term] === wanted.from &&
            found.operand[wanted.from] === wanted.operand[wanted.from];
          if (!isFactor || !isOperand) wrong.push([row, member, place]);
        }
    expect(wrong).toEqual([]);
  });
});
