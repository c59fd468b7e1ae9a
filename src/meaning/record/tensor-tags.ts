import { type ByteStore, tagsOf } from '../../machine/index.js';
import { lostValue, type Trace, valueFormat, type ValueFormat } from '../trace/index.js';

/** An input of a launch whose elements are values. */
export interface TracedInput {
  readonly tensor: string;
  readonly format: ValueFormat;
}

/** Gives all bytes of a store the tag of a lost value's first byte: no value is made of them. */
export function loseAll(store: ByteStore): void {
  tagsOf(store)[0].bytes.fill(8 * lostValue);
}

/** Makes each element of the inputs from a number on a value of its own. */
export function tagInputs(
  trace: Trace,
  stores: ReadonlyMap<string, ByteStore>,
  inputs: readonly TracedInput[],
  first: number,
): void {
  for (const [number, { tensor, format }] of inputs.entries()) {
    const store = number < first ? undefined : stores.get(tensor);
    if (store !== undefined) tagInput(trace, store, format, number);
  }
}

/** Makes each element of a tensor a value of its own. Of two in a byte, the byte has a value before theirs. */
function tagInput(trace: Trace, store: ByteStore, format: ValueFormat, number: number): void {
  const { bytes } = format;
  const input = { origin: 'input', function: null, limit: null, site: '' } as const;
  const operation = trace.addOperation({ ...input, name: format.name, format });
  const four = valueFormat('e2m1')!;
  const halves =
    format.name === 'e2m1x2'
      ? trace.addOperation({ ...input, name: four.name, format: four })
      : null;
  const view = new DataView(store.bytes.buffer, store.bytes.byteOffset, store.bytes.byteLength);
  const count = Math.floor(store.bytes.length / bytes);
  const read = {
    1: (at: number) => view.getUint8(at),
    2: (at: number) => view.getUint16(at, true),
    4: (at: number) => view.getUint32(at, true),
    8: (at: number) => view.getUint32(at, true),
  }[bytes];
  const planes = tagsOf(store);
  for (let i = 0; i < count; i++) {
    const at = i * bytes;
    const value =
      bytes === 8
        ? trace.addWide(operation, [number, i, 0], view.getBigUint64(at, true))
        : trace.add(operation, number, i, 0, read(at));
    if (halves !== null)
      for (let half = 0; half < 2; half++)
        trace.add(halves, number, 2 * i + half, 0, (read(at) >>> (4 * half)) & 0xf);
    for (let byte = 0; byte < bytes; byte++) {
      const tag = value * 8 + byte;
      planes[0].bytes[at + byte] = tag;
      planes[1].bytes[at + byte] = tag >>> 8;
      planes[2].bytes[at + byte] = tag >>> 16;
      planes[3].bytes[at + byte] = Math.floor(tag / 2 ** 24);
    }
  }
}
