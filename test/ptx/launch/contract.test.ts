import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { attentionProblem, featureKinds } from '../../../properties/index.js';
import {
  posedLayout,
  problemMetadata,
  safetensorsDtypeOf,
  writeProblem,
  writeRawTensors,
} from '../../../src/io/index.js';
import type { RawTensor } from '../../../src/io/index.js';
import {
  type AttentionContract,
  contractOfLaunch,
  openContract,
  openLaunch,
} from '../../../src/jobs/index.js';
import { openRequest } from '../../../src/jobs/launch/run-launch-file.js';
import {
  featureSettings,
  poseOutput,
  posedTensors,
  problemShape,
  quantities,
  quantityShape,
  storedOf,
  type Problem,
  type StoredTensor,
} from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { readDocument } from '../../docs/shell-document.js';
import { filledProblem, uniformNumbers } from '../../setup/problems.js';
import { kernelText } from './launches.js';

const root = mkdtempSync(join(tmpdir(), 'contract-'));
afterAll(() => rmSync(root, { recursive: true }));

/** Writes a launch of a kernel that is given some tensors; returns the path of its file. */
async function writeLaunch(
  file: object,
  tensors: readonly RawTensor[],
  outputs: readonly (string | object)[],
  parameters: readonly string[] = [],
): Promise<string> {
  const folder = mkdtempSync(join(root, 'launch-'));
  writeFileSync(
    join(folder, 'kernel.ptx'),
    kernelText(parameters.map((name) => `.param .u64 p_${name}`).join(', ')),
  );
  const given = parameters.map((tensor) => ({ tensor }));
  const common = { entry: 'k', grid: [1], block: [32], parameters: given, outputs };
  writeFileSync(join(folder, 'launch.json'), JSON.stringify({ ...common, ...file }));
  await writeRawTensors(join(folder, 'tensors.safetensors'), tensors);
  return join(folder, 'launch.json');
}

/** The contract of a launch of attention. */
async function attentionOf(
  opened: Parameters<typeof contractOfLaunch>[0],
): Promise<AttentionContract> {
  const contract = await contractOfLaunch(opened);
  if (contract.kind !== 'attention') throw new Error('the contract is one of a recurrence');
  return contract;
}

/** A tensor of a launch and a view of it. */
interface Viewed {
  readonly tensor: RawTensor;
  readonly view: { tensor: string; shape: readonly number[]; strides: number[]; offset: number };
}

/** The bytes of a tensor in a flat buffer, its axes in another order, with gaps, and something before it. */
function viewed(name: string, tensor: StoredTensor, uniform: () => number): Viewed {
  const { shape, data } = tensor;
  const count = shape.reduce((a, b) => a * b, 1);
  const size = count === 0 ? 1 : data.byteLength / count;
  const order = shape.map((_, axis) => axis).sort(() => uniform() - 0.5);
  const strides = shape.map(() => 1);
  let room = 1;
  for (const axis of order) {
    strides[axis] = room;
    room = room * shape[axis] + Math.floor(2 * uniform());
  }
  const offset = Math.floor(5 * uniform());
  const bytes = new Uint8Array((offset + Math.max(1, room)) * size).fill(0x5a);
  const source = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0; at < count; at++) {
    let [rest, place] = [at, offset];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      place += (rest % shape[axis]) * strides[axis];
      rest = Math.floor(rest / shape[axis]);
    }
    bytes.set(source.subarray(at * size, (at + 1) * size), place * size);
  }
  const type = 'format' in tensor ? tensor.format : data instanceof Int32Array ? 'int32' : 'truth';
  const flat = `flat ${name}`;
  return {
    tensor: {
      name: flat,
      dtype: safetensorsDtypeOf[type],
      shape: [bytes.length / size],
      bytes,
    },
    view: { tensor: flat, shape, strides, offset },
  };
}

/** A canonical tensor of a quantity, whose elements are 1, 2, …. */
function numbered(problem: Problem, quantity: (typeof quantities)[number]) {
  const shape = quantityShape(quantity, problemShape(problem));
  const length = shape.reduce((a, b) => a * b, 1);
  return { format: 'fp32', shape, data: Float32Array.from({ length }, (_, i) => i + 1) } as const;
}

describe('the contract of a launch', () => {
  it('has the problem and the outputs of its views, whatever the problem and its strides', async () => {
    const arbitrary = attentionProblem({
      batch: { max: 2 },
      queries: { max: 5 },
      keys: { max: 9 },
      qkDim: { max: 4 },
      vDim: { max: 3 },
      formats: ['bf16', 'fp16', 'fp32', 'fp64', 'e4m3'],
      features: featureKinds,
    });
    const check = async (problem: Problem, seed: number) => {
      fc.pre(posedLayout(problem) !== 'bshd');
      // Files with a mask that hides everything are refused.
      fc.pre(problem.mask?.data.includes(1) ?? true);
      const uniform = uniformNumbers(seed);
      const inputs = Object.entries(posedTensors(problem)).map(
        ([name, tensor]) => [name, viewed(name, tensor, uniform)] as const,
      );
      const outputs = quantities.map((quantity) => {
        const canonical = numbered(problem, quantity);
        const posed = poseOutput(problem, quantity, canonical);
        return [quantity.name, viewed(quantity.name, posed, uniform), canonical] as const;
      });
      const views = [...inputs, ...outputs].map(([name, { view }]) => [name, view]);
      const { scale, causal, window, softcap } = problem;
      const keys = storedOf(problem)?.keys;
      const factors = Object.fromEntries(
        Object.entries(problemMetadata(problem)).flatMap(([name, text]) =>
          /^[qkv]_/.test(name) ? [[name, Number(text)]] : [],
        ),
      );
      const contract = {
        kind: 'attention',
        scale,
        causal,
        ...(window === null ? {} : { window: [window.left, window.right] }),
        ...(softcap === null ? {} : { softcap }),
        ...featureSettings(problem),
        ...factors,
        ...(keys?.form === 'paged' && keys.headsFirst ? { kv_layout: 'HND' } : {}),
        ...Object.fromEntries(views),
      };
      const tensors = [...inputs, ...outputs].map(([, { tensor }]) => tensor);
      const path = await writeLaunch({ contract }, tensors, ['flat out', 'flat lse']);
      const opened = await openLaunch({ path });
      const read = await attentionOf(opened);
      expect(attentionOracle(read.problem)).toEqual(attentionOracle(problem));
      outputs.forEach(([name, { tensor }, canonical], i) => {
        const output = read.outputs[i];
        expect(output).toMatchObject({ name, tensor: `flat ${name}` });
        const flat = new Float32Array(tensor.bytes.buffer);
        const [, heads, rows, columns = 1] = canonical.shape;
        canonical.data.forEach((value, at) => {
          const row = Math.floor(at / columns);
          const head = Math.floor(row / rows);
          const element = output.elementOf(
            Math.floor(head / heads),
            head % heads,
            row % rows,
            at % columns,
          );
          expect(flat[element]).toBe(value);
        });
      });
    };
    await fc.assert(fc.asyncProperty(arbitrary, fc.nat(), check), {
      seed: testSeed,
      numRuns: scaled(40),
    });
  });

  it('is that of the problem that a template is opened on, and of a file that is given', async () => {
    const problem = filledProblem({ batch: 2, heads: 2, queries: 3, keys: 4, dim: 2 }, (i) => i);
    const outputs = [
      { name: 'O', as: 'out', format: 'bf16' },
      { name: 'L', as: 'lse' },
    ];
    const template = await writeLaunch({}, [], outputs, ['q', 'k', 'v']);
    const file = join(template, '..', 'problem.safetensors');
    await writeProblem(file, problem);
    const opened = await openRequest({
      path: template,
      problem: file,
      contract: false,
      races: false,
    });
    const read = await attentionOf(opened);
    expect(read.problem).toEqual(problem);
    expect(read.outputs).toMatchObject([
      { name: 'out', tensor: 'O' },
      { name: 'lse', tensor: 'L' },
    ]);
    expect(read.outputs[0].elementOf(1, 1, 2, 1)).toBe(2 * 2 * 3 * 2 - 1);
    expect(read.outputs[1].elementOf(1, 0, 2, 0)).toBe(8);
    const given = join(template, '..', 'contract.json');
    const view = { tensor: 'q', shape: [1, 2, 3, 2], offset: 12 };
    const keys = { tensor: 'k', shape: [1, 2, 4, 2], offset: 16 };
    const out = { tensor: 'O', shape: [2, 3, 2], offset: 12 };
    writeFileSync(
      given,
      JSON.stringify({ kind: 'attention', scale: 2, q: view, k: keys, v: keys, out }),
    );
    const second = await contractOfLaunch(opened, await openContract(given));
    expect(second.problem).toMatchObject({ scale: 2, q: { shape: [1, 2, 3, 2] } });
    expect(second.problem.q.data).toEqual(problem.q.data.slice(12));
    expect(second.outputs[0].elementOf(0, 1, 0, 1)).toBe(12 + 7);
  });
});

describe('the contract in the documentation', () => {
  it('fits its tensors, of which one holds Q, K and V', async () => {
    const page = readDocument('docs/guide/compiled-kernels.md');
    const [, text] = /```json\n(\{\n {2}"contract"[^`]*)```/.exec(page) ?? [];
    const { contract } = JSON.parse(text ?? '{}') as { readonly contract: object };
    const bf16 = (name: string, elements: number): RawTensor => ({
      name,
      dtype: 'BF16',
      shape: [elements],
      bytes: new Uint8Array(2 * elements),
    });
    const rows = 2 * 16 * 512;
    const tensors = [bf16('qkv', 3 * rows * 64), bf16('O', rows * 64), bf16('L', rows)];
    const opened = await openLaunch({ path: await writeLaunch({ contract }, tensors, ['O', 'L']) });
    const { problem, outputs } = await attentionOf(opened);
    expect(problemShape(problem)).toMatchObject({ batch: 2, heads: 16, keys: 512, vDim: 64 });
    expect(outputs.map(({ name }) => name)).toEqual(['out', 'lse']);
  });
});

describe('a contract that is wrong', () => {
  const flat = (name: string, elements: number): RawTensor => ({
    name,
    dtype: 'F32',
    shape: [elements],
    bytes: new Uint8Array(4 * elements),
  });
  const tensors = [flat('Q', 24), flat('K', 24), flat('O', 24), flat('other', 24)];
  const view = (tensor: string, changes: object = {}) => ({
    tensor,
    shape: [2, 3, 4],
    ...changes,
  });
  const right = {
    kind: 'attention',
    q: view('Q'),
    k: view('K'),
    v: view('K'),
    out: view('O'),
  };

  /** The message with which a launch with a contract is refused, without the name of its folder. */
  async function refusal(contract: unknown): Promise<string> {
    const path = await writeLaunch({ contract }, tensors, ['O']);
    try {
      await contractOfLaunch(await openLaunch({ path }));
    } catch (error) {
      const { name, message } = error as Error;
      expect(name).toBe('RequestError');
      expect(message).not.toContain('\n');
      return message.replace(path, 'launch.json');
    }
    return 'not refused';
  }

  it.each<readonly [object | number, string]>([
    [right, 'not refused'],
    [7, 'launch.json: contract must be object'],
    [{ ...right, kind: 'conv' }, 'contract: has the kind "conv"; give attention'],
    [{ q: view('Q') }, 'contract: has the kind undefined; give attention'],
    [{ ...right, scal: 1 }, 'contract: has no member "scal"; did you mean "scale"?'],
    [{ ...right, scale: '1' }, 'contract: scale must be number'],
    [{ ...right, k_descale: 0 }, 'contract: k_descale must be > 0'],
    [{ ...right, window: [1] }, 'contract: window must NOT have fewer than 2 items'],
    [{ ...right, q: { tensor: 'Q' } }, "contract: q must have required property 'shape'"],
    [{ ...right, q: view('Q', { shap: 1 }) }, 'contract: q has no member "shap"; leave it out'],
    [{ ...right, q: view('Q', { shape: [1.5] }) }, 'contract: q.shape[0] must be integer'],
    [
      { ...right, k: view('othr') },
      'contract: k is a view of "othr", which is no tensor of the launch; did you mean "other"?',
    ],
    [
      { ...right, k: view('nothing alike') },
      'which is no tensor of the launch; there are Q, K, O and other',
    ],
    [
      { ...right, k: view('K', { strides: [4, 1] }) },
      'contract: k has 2 strides for 3 sizes; give as many, or leave them out for row-major order',
    ],
    [
      { ...right, k: view('K', { offset: 1 }) },
      'contract: k reaches element 24 of "K", which has 24; mend its shape, strides or offset',
    ],
    [
      { ...right, out: view('O', { strides: [24, 8, 1] }) },
      'contract: out reaches element 43 of "O", which has 24; mend its shape, strides or offset',
    ],
    [
      { ...right, k: view('K', { shape: [2, 3, 3] }) },
      'contract: q has dim 4 but k has dim 3; make them equal',
    ],
    [
      { ...right, out: view('O', { shape: [2, 4, 3] }) },
      "contract: out has shape [2, 4, 3], but the problem's is [1, 2, 3, 4]; mend it",
    ],
    [
      { ...right, out: view('other') },
      'contract: out is a view of "other", which is no output of the launch; name one of its outputs (O), or add it to them',
    ],
    [
      { ...right, out: undefined },
      'contract: names no output; give one of out, lse, dq, dk and dv',
    ],
    [{ ...right, v: undefined }, 'contract: has no tensor "v"'],
    [{ ...right, mask: view('other', { shape: [3, 3] }) }, 'tensor "mask": holds fp32 numbers'],
    [
      { ...right, q: view('Q', { format: 'fp9' }) },
      'contract: tensor "q": declared format "fp9" is unknown',
    ],
  ])('is refused with one line: %j', async (contract, message) => {
    const said = await refusal(contract);
    expect(said).toContain(message);
    if (message !== 'not refused') expect(said).toMatch(/^launch\.json: contract/);
  });

  it('is missed where there is none', async () => {
    const path = await writeLaunch({}, tensors, ['O']);
    await expect(contractOfLaunch(await openLaunch({ path }))).rejects.toThrow(
      'does not say what its tensors are; add a contract to it, or give --contract <file>',
    );
    const other = join(path, '..', 'contract.json');
    writeFileSync(other, '{');
    await expect(openContract(other)).rejects.toThrow(`${other}: is no JSON`);
  });
});
