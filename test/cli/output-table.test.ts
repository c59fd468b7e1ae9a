import { readOutputs } from '../../src/jobs/index.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { readExecuted } from '../../src/jobs/index.js';
import { openTensorFile, writeSafetensors, type TensorFile } from '../../src/io/index.js';
import { writtenOutputs } from '../../src/io/live/index.js';
import { quantities, type Problem, type Quantity, type Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';

/** An output that the library does not know. */
const gate: Quantity = {
  name: 'gate',
  axes: ['batch', 'heads', 'queries', 'vDim'],
  row: 'vector',
  prose: 'the gate',
  label: 'gate',
  parts: 'elements',
  unit: 'output units',
  magnitude: 'Σ p|v|',
  isExpected: false,
  option: 'gate',
};
const known = [...quantities, gate];

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-table-'));
afterAll(() => rmSync(scratch, { recursive: true }));

/** Elements that are counted up from `first`. */
function tensor(first: number, ...shape: readonly number[]): Tensor {
  const length = shape.reduce((product, size) => product * size, 1);
  return { format: 'fp32', shape, data: Float32Array.from({ length }, (_, i) => first + i) };
}

const problem: Problem = {
  q: tensor(0, 1, 1, 2, 3),
  k: tensor(1, 1, 1, 4, 3),
  v: tensor(2, 1, 1, 4, 3),
  scale: 1,
  causal: false,
  window: null,
  softcap: null,
};
const out = tensor(10, 1, 1, 2, 3);
const lse = tensor(20, 1, 1, 2);
const ofGate = tensor(30, 1, 1, 2, 3);
const reading = { formats: {}, headsFirst: true, problem };

type Tensors = Readonly<Record<string, Tensor>>;

async function withFile<T>(tensors: Tensors, use: (file: TensorFile) => Promise<T>): Promise<T> {
  const path = join(scratch, 'tensors.safetensors');
  await writeSafetensors(path, tensors, {});
  const file = await openTensorFile(path);
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

it("reads an output of the table by its name from the problem's file", async () => {
  const { outputs, sources } = await withFile({ out, lse, gate: ofGate }, (file) =>
    readOutputs(file, {}, reading, known),
  );
  expect(outputs).toMatchObject({ out, lse, gate: ofGate });
  expect(sources['gate']).toMatchObject({ tensor: 'gate', format: 'fp32' });
});

it('reads it from what its option names, in the layout of the problem', async () => {
  const other = join(scratch, 'other.safetensors');
  await writeSafetensors(other, { first: tensor(0, 1), gate: tensor(40, 1, 2, 1, 3) }, {});
  const named = { out: ':out', gate: other };
  const { outputs, sources } = await withFile({ out, lse }, (file) =>
    readOutputs(file, named, { ...reading, headsFirst: false }, known),
  );
  expect(outputs).toMatchObject({ lse: null, gate: tensor(40, 1, 1, 2, 3) });
  expect(sources['gate']).toMatchObject({ path: other, tensor: 'gate' });
});

it('reads it from what a live kernel wrote, where it is there', async () => {
  const execute = (tensors: Tensors) =>
    withFile(tensors, (file) => readExecuted(file, problem, known));
  expect((await execute({ out, gate: ofGate })).outputs).toMatchObject({ lse: null, gate: ofGate });
  expect((await execute({ out, lse })).sources['gate']).toBeNull();
  const checked = await withFile({ out, gate: ofGate }, (file) =>
    writtenOutputs(file, ({ name }) => file.read(name), known),
  );
  expect(checked).toMatchObject({ out, lse: null, gate: ofGate });
});

it('refuses one whose shape is not that of the table', async () => {
  const executed = withFile({ out, gate: lse }, (file) => readExecuted(file, problem, known));
  await expect(executed).rejects.toThrow(RequestError);
  await expect(executed).rejects.toThrow(/^the gate has shape \[1, 1, 2\]/);
});

it('names what a live kernel wrote that nothing reads, and refuses a name misspelt', async () => {
  const execute = (tensors: Tensors) =>
    withFile(tensors, (file) => readExecuted(file, problem, known));
  expect((await execute({ out, lse, gate: ofGate })).unasked).toEqual([]);
  expect((await execute({ out, row_max: lse, dq: out })).unasked?.toSorted()).toEqual([
    'dq',
    'row_max',
  ]);
  for (const [name, meant] of [
    ['LSE', 'lse'],
    ['lsee', 'lse'],
    ['gates', 'gate'],
  ])
    await expect(execute({ out, [name!]: lse })).rejects.toThrow(
      new RequestError(`it holds "${name}" and no "${meant}"; call it so, or leave it out`),
    );
  // Nothing is missing that a name could stand for.
  expect((await execute({ out, lse, lsee: lse, gate: ofGate })).unasked).toEqual(['lsee']);
});
