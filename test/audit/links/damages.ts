import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  storageOf,
} from '../../../src/formats/index.js';
import type {
  CapturedTensors,
  DecodeChainFile,
  RawBytes,
} from '../../fixtures/decode-chain-captures.js';

/** A damage to a capture. */
interface Damage {
  readonly title: string;
  readonly apply: (tensors: CapturedTensors) => void;
}

function tensorOf(tensors: CapturedTensors, ...names: readonly string[]): RawBytes {
  const found = names.map((name) => tensors.get(name)).find((tensor) => tensor !== undefined);
  if (found === undefined) throw new Error(`the capture has none of ${names.join(', ')}`);
  return found;
}

const elements = ({ shape }: RawBytes) => shape.reduce((product, size) => product * size, 1);
const last = ({ shape }: RawBytes) => shape[shape.length - 1] ?? 1;

/** Integers of 32 or 64 bits by their place, of which the lower half is written. */
function integers({ bytes, dtype }: RawBytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const size = dtype === 'I64' ? 8 : 4;
  return {
    get: (at: number) => view.getInt32(size * at, true),
    set: (at: number, value: number) => view.setInt32(size * at, value, true),
  };
}

const formatOf = { F32: formats.fp32, F16: formats.fp16, BF16: formats.bf16 } as const;

/** Changes numbers at some places, and rounds them to their format again. */
function changeNumbers(tensor: RawBytes, change: (x: number, at: number) => number): void {
  const format = formatOf[tensor.dtype as keyof typeof formatOf];
  const { bytes } = tensor;
  const { buffer } = Uint8Array.from(bytes);
  const patterns = tensor.dtype === 'F32' ? new Uint32Array(buffer) : new Uint16Array(buffer);
  const values = decodeToFloat64(storageOf(format, patterns), format);
  const made = encodeFromFloat64(format, values.map(change));
  bytes.set(new Uint8Array(made.buffer, made.byteOffset, made.byteLength));
}

/** Exchanges two stretches of bytes of the same length. */
function exchange({ bytes }: RawBytes, a: number, b: number, length: number): void {
  const first = bytes.slice(a, a + length);
  bytes.copyWithin(a, b, b + length);
  bytes.set(first, b);
}

/** The first number from `from` on that a list has not. */
function unlisted(list: RawBytes, from: number, first: number): number {
  const { get } = integers(list);
  const listed = new Set(Array.from({ length: last(list) }, (_, i) => get(from + i)));
  let one = first;
  while (listed.has(one)) one++;
  return one;
}

const ofSelections: readonly Damage[] = [
  {
    title: 'an index exchanged for one that was not selected',
    apply: (tensors) => {
      const list = tensorOf(tensors, 'indices');
      integers(list).set(3, unlisted(list, 0, 0));
      tensors.delete('topk_scores');
    },
  },
  {
    title: 'an index listed twice',
    apply: (tensors) => {
      const { get, set } = integers(tensorOf(tensors, 'indices'));
      set(1, get(0));
    },
  },
  {
    title: 'the lists of two rows exchanged',
    apply: (tensors) => {
      const list = tensorOf(tensors, 'indices');
      exchange(list, 0, 4 * last(list), 4 * last(list));
      tensors.delete('topk_scores');
    },
  },
  {
    title: 'an index beyond the keys',
    apply: (tensors) => integers(tensorOf(tensors, 'indices')).set(2, 1 << 20),
  },
];

/** Changes the numbers of a head of the first part. */
function changeHead(tensors: CapturedTensors, name: string, change: (x: number) => number): void {
  const tensor = tensorOf(tensors, name);
  const ofHead =
    elements(tensor) / (tensor.shape[0] ?? 1) / (tensor.shape[1] ?? 1) / (tensor.shape[2] ?? 1);
  changeNumbers(tensor, (x, at) => (Math.floor(at / ofHead) === 1 ? change(x) : x));
}

const ofMerges: readonly Damage[] = [
  {
    title: '1 % on one head of a part',
    apply: (tensors) => changeHead(tensors, 'out_partial', (x) => 1.01 * x),
  },
  {
    title: 'the LSEs of a part off by a twentieth',
    apply: (tensors) => {
      const lse = tensorOf(tensors, 'lse_partial');
      const ofPart = elements(lse) / (lse.shape[0] ?? 1);
      changeNumbers(lse, (x, at) => (at < ofPart ? x + 0.05 : x));
    },
  },
  {
    title: 'the LSEs of two parts exchanged',
    apply: (tensors) => {
      const lse = tensorOf(tensors, 'lse_partial');
      const part = lse.bytes.length / (lse.shape[0] ?? 1);
      exchange(lse, 0, part, part);
    },
  },
  {
    title: 'an element of the output off by 2 %',
    apply: (tensors) =>
      changeNumbers(tensorOf(tensors, 'out'), (x, at) => (at === 9 ? 1.02 * x + 1e-3 : x)),
  },
];

/** The slot of a token, and the bytes of a slot of the first buffer. */
function stored(tensors: CapturedTensors) {
  const slots = integers(tensorOf(tensors, 'slot_mapping'));
  const cache = tensorOf(tensors, 'key_cache', 'kv_cache');
  const [blocks = 1, block = 1] = cache.shape;
  const slotBytes = cache.bytes.length / (blocks * block);
  const tokens = elements(tensorOf(tensors, 'slot_mapping'));
  const used = Array.from({ length: tokens }, (_, token) => slots.get(token));
  const [first = 0, second = 0] = used.filter((slot) => slot >= 0);
  let unused = 0;
  while (used.includes(unused)) unused++;
  return { slots, cache, slotBytes, used, first, second, unused };
}

const ofStores: readonly Damage[] = [
  {
    title: 'a byte of a slot',
    apply: (tensors) => {
      const { cache, slotBytes, first } = stored(tensors);
      const at = first * slotBytes + 5;
      cache.bytes[at] = (cache.bytes[at] ?? 0) ^ 0x40;
    },
  },
  {
    title: 'a byte of a slot that no token has',
    apply: (tensors) => {
      const { cache, slotBytes, unused } = stored(tensors);
      const at = unused * slotBytes + 5;
      cache.bytes[at] = (cache.bytes[at] ?? 0) ^ 1;
    },
  },
  {
    title: 'the slots of two tokens exchanged',
    apply: (tensors) => {
      const { slots, used, first, second } = stored(tensors);
      slots.set(used.indexOf(first), second);
      slots.set(used.indexOf(second), first);
    },
  },
  {
    title: 'a token stored over another',
    apply: (tensors) => {
      const { cache, slotBytes, first, second } = stored(tensors);
      cache.bytes.copyWithin(first * slotBytes, second * slotBytes, (second + 1) * slotBytes);
    },
  },
];

/** A factor of the next head, block of columns or token, where factors are stored. */
const ofFactors: Damage = {
  title: 'factors of two neighbours exchanged',
  apply: (tensors) => {
    const { used, first } = stored(tensors);
    const factors = tensorOf(tensors, 'k_scale');
    const size = factors.dtype === 'U8' ? 1 : 4;
    const perSlot = elements(factors) / ((factors.shape[0] ?? 1) * (factors.shape[1] ?? 1));
    const at = first * perSlot * size;
    const isEqual = (by: number) => {
      const own = factors.bytes.subarray(at, at + size);
      return own.every((byte, i) => byte === factors.bytes[at + by * size + i]);
    };
    const next = used.find((slot) => slot >= 0 && slot !== first) ?? 0;
    let by = perSlot > 1 ? 1 : next - first;
    while (isEqual(by)) by++;
    exchange(factors, at, at + by * size, size);
  },
};

/** Changes the numbers of one head of a tensor of attention, by the file's layout. */
function changeOutputHead(
  tensors: CapturedTensors,
  isHeadsFirst: boolean,
  change: (x: number) => number,
): void {
  const out = tensorOf(tensors, 'out');
  const [, a = 1, b = 1, dim = 1] = out.shape;
  const headOf = (at: number) =>
    isHeadsFirst ? Math.floor(at / (b * dim)) % a : Math.floor(at / dim) % b;
  changeNumbers(out, (x, at) => (headOf(at) === 1 ? change(x) : x));
}

function ofAttention(isHeadsFirst: boolean): readonly Damage[] {
  return [
    {
      title: '1 % on one head of the output',
      apply: (tensors) => changeOutputHead(tensors, isHeadsFirst, (x) => 1.01 * x),
    },
    {
      title: 'a column of the output exchanged with the next',
      apply: (tensors) => exchange(tensorOf(tensors, 'out'), 40, 42, 2),
    },
    {
      title: 'a value of another sign',
      apply: (tensors) =>
        changeNumbers(tensorOf(tensors, 'v'), (x, at) => (at === 70 ? -x - 1 : x)),
    },
  ];
}

const ofLists: readonly Damage[] = [
  {
    title: 'a block of the last query exchanged for one that it did not see',
    apply: (tensors) => {
      const list = tensorOf(tensors, 'block_index');
      const from = elements(list) - last(list);
      integers(list).set(from, unlisted(list, from, 0));
    },
  },
  {
    title: 'an LSE off by a hundredth',
    apply: (tensors) =>
      changeNumbers(tensorOf(tensors, 'lse'), (x, at) => (at === 77 ? x + 0.01 : x)),
  },
];

/** The damages that a capture is tried with, none of which may pass. */
export function damagesOf({ contract, name }: DecodeChainFile): readonly Damage[] {
  if (contract === 'selection') return ofSelections;
  if (contract === 'merge') return ofMerges;
  if (contract === 'attention')
    return name.startsWith('nsa') ? [...ofAttention(false), ...ofLists] : ofAttention(true);
  return /flash-e4m3|mla-e4m3/.test(name) ? ofStores : [...ofStores, ofFactors];
}
