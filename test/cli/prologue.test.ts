import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { decodeTensor } from '../../src/formats/index.js';
import {
  drawPrologue,
  judgedPrologue,
  type PrologueMistake,
} from '../audit/links/prologue/plain-prologue.js';
import { testSeed } from '../setup/effort.js';
import { numbers, whole, writeRaw, type RawTensor } from './cache-file.js';
import { chainDump } from './chain-dump.js';
import { refusal, runInProcess } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-prologue-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const plan = drawPrologue(testSeed, {
  columns: 16,
  dims: 8,
  first: 0,
  hasRope: true,
  epsilon: 1e-5,
  offset: 1,
  tables: null,
  order: 'norm-rope',
  factor: 0.25,
  output: 'bf16',
  base: 10000,
});
const notes = {
  contract: 'prologue',
  norm_epsilon: '1e-5',
  norm_offset: '1',
  ...(plan.normFormat !== null && { norm_format: plan.normFormat }),
  softmax_scale: '0.25',
  rope_layout: plan.layout,
  rope_base: '10000',
  rope_dims: '8',
};

/** The tensors of a kernel's prologue. */
function dump(mistake: PrologueMistake = {}): Record<string, RawTensor> {
  const { parts } = judgedPrologue(plan, mistake);
  const heads = { q: plan.heads.q, k: plan.heads.k };
  return {
    positions: whole(plan.positions),
    token_sequences: whole(plan.sequences),
    q_norm_gain: numbers('fp32', plan.gains.q, [heads.q, plan.columns]),
    k_norm_gain: numbers('fp32', plan.gains.k, [heads.k, plan.columns]),
    ...Object.fromEntries(
      parts.flatMap(({ name, input, output }) => [
        [name, numbers(plan.inputFormat, decodeTensor(input), input.shape)],
        [`${name}_out`, numbers(output.format, decodeTensor(output), output.shape)],
      ]),
    ),
  };
}

async function file(
  tensors: Readonly<Record<string, RawTensor>>,
  metadata: Readonly<Record<string, string>> = notes,
): Promise<string> {
  const path = join(scratch, `${randomUUID()}.safetensors`);
  await writeRaw(path, tensors, metadata);
  return path;
}

describe('flashproof audit of a prologue', () => {
  it('passes a right one by the base of its frequencies', async () => {
    const { status, stdout } = await runInProcess('audit', await file(dump()));
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /^PASS: q is what rounding leaves of the exact numbers, k is .* and v is as it was/,
    );
    expect(status).toBe(0);
  });

  it.each([
    [{ base: 500000 }, /^FAIL: the base of the frequencies is 500000 \(q and k\)/],
    [
      { onlyOf: 'k', offset: 0 },
      /^FAIL: the norm multiplies by the gain where it is 1 \+ gain.* \(k\)/,
    ],
    [{ rotatesValues: true }, /^FAIL: values are rotated as keys are \(v\)/],
  ] as const)('fails %o with its cause', async (mistake, said) => {
    const { status, stdout } = await runInProcess('audit', await file(dump(mistake)));
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(said);
    expect(status).toBe(1);
  });

  it('is a link of a chain, whose queries attention has to read', async () => {
    const prefixed = Object.fromEntries(
      Object.entries(dump()).map(([name, tensor]) => [`prologue.${name}`, tensor]),
    );
    const own = Object.fromEntries(
      Object.entries(notes)
        .filter(([key]) => key !== 'contract')
        .map(([key, text]) => [`prologue.${key}`, text]),
    );
    const { status, stdout } = await runInProcess(
      ...['audit', await file({ ...prefixed, ...chainDump(testSeed) }, own)],
    );
    const said = stdout.replaceAll(/\s+/g, ' ');
    // Their shapes are others, since the two were drawn apart.
    expect(said).toMatch(/^PASS: prologue, cache-write, selection and attention are right/);
    expect(said).toMatch(/prologue → attention: queries not compared: prologue wrote BF16/);
    expect(status).toBe(0);
  });

  it.each([
    [{}, /^PASS/, 0],
    [{ base: 500000 }, /^FAIL: the base of the frequencies is 500000/, 1],
  ] as const)('is part of a write that makes its tables: %o', async (mistake, said, code) => {
    const all = dump(mistake);
    const written = all['k_out'];
    const path = await file(
      {
        k: all['k'],
        k_norm_gain: all['k_norm_gain'],
        positions: all['positions'],
        slot_mapping: whole([...plan.positions.keys()]),
        key_cache: written,
        key_cache_before: { ...written, bytes: written.bytes.map(() => 0) },
      },
      {
        ...Object.fromEntries(Object.entries(notes).filter(([key]) => key !== 'softmax_scale')),
        contract: 'cache-write',
        cache_layout: 'nhd',
      },
    );
    const { status, stdout } = await runInProcess('audit', path);
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(said);
    expect(status).toBe(code);
  });

  it.each([
    [
      { rope_layout: 'whole' },
      /rope_layout is "whole"; give one of halves, neighbours, interleaved/,
    ],
    [{ rope_base: '0.5' }, /rope_base is 0\.5; give a number from 1 to 2\^32/],
    [{ rope_dims: '7' }, /rope_dims is 7; give an even number up to 16/],
    [{ norm_epsilon: '-1' }, /norm_epsilon is '-1'; give a positive number/],
  ] as const)('refuses %o in one line', async (wrong, line) => {
    expect(await refusal('audit', await file(dump(), { ...notes, ...wrong }))).toMatch(line);
  });

  it('refuses a file that says nothing of a prologue', async () => {
    const rest = Object.fromEntries(
      Object.entries(dump()).filter(([name]) => name !== 'positions'),
    );
    expect(await refusal('audit', await file(rest))).toMatch(/has a rotation without positions/);
    expect(await refusal('audit', await file(rest, { contract: 'prologue' }))).toMatch(
      /nothing says what is done to q and k/,
    );
  });
});
