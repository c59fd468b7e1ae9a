import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';
import { unpack } from '../fixtures/gradients/unpack.mjs';
import type { ExampleId } from './src/examples';

const root = fileURLToPath(new URL('..', import.meta.url));

/** A fixture's problem with what one kernel made of it, or with what an emulated kernel that has a bug does. */
interface Recipe {
  readonly fixture: string;
  /** The tensors that are taken beside q, k and v, by the names that they get: results, and parts of the problem. */
  readonly tensors: Readonly<Record<string, string>>;
  /** The bug of the emulated FlashAttention-4 that makes out and lse. */
  readonly variant?: string;
}

/** The results of a kernel in a fixture, by the names that the audit page chooses by itself. */
function resultsOf(kernel: string, ...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, `${kernel}.${name}`]));
}

const recipes: Readonly<Record<ExampleId, Recipe>> = {
  cudnn: {
    fixture: 'attention/09-normal-200x300-d64-bf16.safetensors',
    tensors: resultsOf('torch_cudnn', 'out', 'lse'),
  },
  'one-key-too-many': {
    fixture: 'attention/03-sink-256x256-d64-bf16-causal.safetensors',
    tensors: { out: 'out', lse: 'lse' },
    variant: 'causal-one-more',
  },
  'no-tail-mask': {
    fixture: 'attention/09-normal-200x300-d64-bf16.safetensors',
    tensors: { out: 'out', lse: 'lse' },
    variant: 'missing-tail-mask',
  },
  gradients: {
    fixture: 'gradients/normal-128.safetensors.br',
    tensors: { dout: 'dout', ...resultsOf('torch_flash', 'out', 'dq', 'dk', 'dv') },
  },
  splits: {
    fixture: 'features/triton-splits.safetensors',
    tensors: {
      ...resultsOf('triton_paged', 'out', 'lse', 'out_partial', 'lse_partial'),
      block_table: 'block_table',
      seqused_k: 'seqused_k',
    },
  },
};

/** A tensor of a safetensors file. */
interface Tensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** A safetensors file in memory. */
interface TensorFile {
  readonly tensors: ReadonlyMap<string, Tensor>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A tensor as the header of a file describes it. */
type Described = Omit<Tensor, 'bytes'> & { readonly data_offsets: readonly [number, number] };

function parse(file: Uint8Array): TensorFile {
  const start = 8 + Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, start))) as Readonly<
    Record<string, Described>
  >;
  const { __metadata__: metadata = {}, ...described } = header as typeof header & {
    readonly __metadata__?: Readonly<Record<string, string>>;
  };
  const tensors = Object.entries(described).map(([name, one]) => {
    const [from, to] = one.data_offsets.map((offset) => start + offset);
    return [name, { ...one, bytes: file.subarray(from, to) }] as const;
  });
  return { tensors: new Map(tensors), metadata };
}

function serialize({ tensors, metadata }: TensorFile): Uint8Array {
  let end = 0;
  const described = [...tensors].map(([name, { dtype, shape, bytes }]) => {
    const begin = end;
    end += bytes.length;
    return [name, { dtype, shape, data_offsets: [begin, end] }] as const;
  });
  const text = JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(described) });
  // Tensors begin at a multiple of eight, as the format asks.
  const header = Buffer.from(text.padEnd(8 * Math.ceil(text.length / 8)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, ...[...tensors.values()].map(({ bytes }) => bytes)]);
}

/** What the emulated FlashAttention-4 with a bug makes of a fixture; `dist` must be built. */
function emulated(fixture: string, variant: string): TensorFile {
  const folder = mkdtempSync(join(tmpdir(), 'flashproof-examples-'));
  try {
    const saved = join(folder, 'out.safetensors');
    const main = join(root, 'dist/src/cli/main.js');
    const words = ['emulate', 'fa4', fixture, '--set', `variant=${variant}`, '--save', saved, '-q'];
    const { status, stderr } = spawnSync(process.execPath, [main, ...words], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`the emulated ${variant} fails: ${stderr}`);
    return parse(readFileSync(saved));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function tensorOf({ tensors }: TensorFile, name: string): Tensor {
  const tensor = tensors.get(name);
  if (tensor === undefined)
    throw new Error(`no tensor ${name} among ${[...tensors.keys()].join()}`);
  return tensor;
}

/** The bytes of an example's file: q, k and v, its results, and what the fixture says of the problem. */
function dumpOf({ fixture, tensors, variant }: Recipe): Uint8Array {
  const path = join(root, 'fixtures', fixture);
  const packed = readFileSync(path);
  const source = parse(fixture.endsWith('.br') ? unpack(packed) : packed);
  const results = variant === undefined ? source : emulated(path, variant);
  const taken = Object.entries(tensors).map(
    ([name, own]) => [name, tensorOf(results, own)] as const,
  );
  const problem = ['q', 'k', 'v'].map((name) => [name, tensorOf(source, name)] as const);
  // Other facts are of the kernel that the fixture was captured from.
  const kept = ['scale', 'causal', 'layout'].filter((name) => name in source.metadata);
  const metadata = Object.fromEntries(kept.map((name) => [name, source.metadata[name]]));
  return serialize({ tensors: new Map([...problem, ...taken]), metadata });
}

/** Writes the dumps that the audit page offers into the site's folder examples, while the site is built. */
export function exampleDumps(): Plugin {
  return {
    name: 'example-dumps',
    writeBundle({ dir = '' }) {
      mkdirSync(join(dir, 'examples'), { recursive: true });
      for (const [id, recipe] of Object.entries(recipes))
        writeFileSync(join(dir, 'examples', `${id}.safetensors`), dumpOf(recipe));
    },
  };
}
