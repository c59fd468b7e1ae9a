import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, it } from 'vitest';
import type { Certificate } from '../../src/jobs/index.js';
import { refusal, runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-certify-chain-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const recorded = fileURLToPath(
  new URL('../../examples/triton/recorded/decode-sm_90/', import.meta.url),
);
const schema = JSON.parse(
  readFileSync(new URL('../../src/report/json/certificate.schema.json', import.meta.url), 'utf8'),
) as object;
const validate = new Ajv2020({ allErrors: true }).compile(schema);

interface LaunchJson {
  readonly parameters: readonly Readonly<Record<string, unknown>>[];
  readonly buffers: readonly Readonly<Record<string, unknown>>[];
}

type Edit = (launch: LaunchJson) => object;

/** The launch files of a copy of the two launches, each perhaps changed. */
function copied(edits: readonly (Edit | null)[] = []): readonly [attend: string, merge: string] {
  const folder = mkdtempSync(join(scratch, 'chain-'));
  cpSync(recorded, folder, { recursive: true });
  const paths = ['0-attend', '1-merge'].map((name) => join(folder, name, 'launch.json'));
  edits.forEach((edit, i) => {
    if (edit === null) return;
    const launch = JSON.parse(readFileSync(paths[i], 'utf8')) as LaunchJson;
    writeFileSync(paths[i], JSON.stringify(edit(launch)));
  });
  return [paths[0], paths[1]];
}

async function certify(...given: readonly string[]): Promise<Certificate> {
  const { stdout } = await runInProcess('certify', ...given, '--json', '-');
  const certificate = JSON.parse(stdout) as Certificate;
  validate(certificate);
  expect(validate.errors).toBeNull();
  return certificate;
}

/** A launch that is given another tensor in the place of one. */
function given(tensor: string, other: string): Edit {
  return (launch) => ({
    ...launch,
    parameters: launch.parameters.map((one) =>
      one.tensor === tensor ? { ...one, tensor: other } : one,
    ),
  });
}

describe('the certificate of a chain', () => {
  it('compares what the last launch leaves with the contract, and says which launch rounds', async () => {
    const certificate = await certify(...copied());
    expect(certificate).toMatchObject({
      status: 'certified',
      reasons: [],
      launch: { entry: 'merge_parts' },
      chain: [
        { entry: 'attend_part', pass: true },
        { entry: 'merge_parts', pass: true },
      ],
      algebra: [
        { output: 'out', compared: 64, constant: 'fp32(scale)·fp32(log2 e)' },
        { output: 'lse', compared: 2 },
      ],
    });
    const [, lse] = certificate.outputs;
    expect(new Set(lse.rounding!.shares.map(({ launch }) => launch))).toEqual(new Set([1, 2]));
    expect(certificate.outputs.map(({ name }) => name)).toEqual(['o', 'lse']);
  });

  it('follows the launch that a file names as its next, and prints which launch a place is of', async () => {
    const [attend] = copied([(launch) => ({ ...launch, next: '../1-merge/launch.json' })]);
    const { stdout, status } = await runInProcess('certify', attend);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^CERTIFIED: 2 launches, the last merge_parts of/);
    expect(stdout).toMatch(/Launch 1: attend_part of/);
    expect(stdout).toMatch(/launch 1: ex2\.approx\.ftz\.f32/);
  });

  inTurn('compares expressions with another chain', async () => {
    const [attend] = copied([(launch) => ({ ...launch, next: '../1-merge/launch.json' })]);
    const certificate = await certify(...copied(), '--same', attend);
    expect(certificate.same!.outputs).toMatchObject([
      { name: 'o', other: 0, lost: 0 },
      { name: 'lse', other: 0, lost: 0 },
    ]);
  });

  it('says that what nobody wrote is lost, and takes zeros for constants', async () => {
    /** The largest scores go elsewhere, so that nobody writes those that the merge reads. */
    const elsewhere =
      (zeros: boolean): Edit =>
      (launch) => {
        const [first] = launch.buffers.filter(({ name }) => name === 'part_max');
        const buffers = [...launch.buffers, { ...first, name: 'spare' }].map((one) => ({
          ...one,
          zeros,
        }));
        return { ...given('part_max', 'spare')(launch), buffers };
      };
    const lost = await certify(...copied([elsewhere(false), null]));
    expect(lost).toMatchObject({ status: 'incomplete', outputs: [{ coverage: { lost: 64 } }, {}] });
    const wrong = await certify(...copied([elsewhere(true), null]));
    expect(wrong).toMatchObject({ status: 'refuted', outputs: [{ coverage: { lost: 0 } }, {}] });
  });

  inTurn.each([
    ['swapped', () => [...copied()].reverse()],
    ['the sums for the largest scores', () => copied([null, given('part_max', 'part_sum')])],
    ['the largest scores for the sums', () => copied([null, given('part_sum', 'part_max')])],
    ['values for keys', () => copied([given('k', 'v'), null])],
  ] as const)('does not certify launches with a mistake between them: %s', async (_, paths) => {
    const { status } = await certify(...paths());
    expect(status).not.toBe('certified');
  });

  it('refuses a chain without the tensors of its contract, and a tensor of another size under one name', async () => {
    const [, merge] = copied();
    expect(await refusal('certify', merge)).toMatch(/q is a view of "q", which is no tensor/);
    const small: Edit = (launch) => ({
      ...launch,
      buffers: launch.buffers.map((one) => ({ ...one, shape: [3, 2, 8] })),
    });
    const message = await refusal('certify', ...copied([null, small]));
    expect(message).toMatch(/"part_\w+" has another size .* rename it$/);
  });
});
