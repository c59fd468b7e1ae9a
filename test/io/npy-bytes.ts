/** An npy array put together by hand: the header's text as it stands, and the data. */
export function npyBytes(
  header: string | Uint8Array,
  data: Uint8Array = new Uint8Array(0),
  { version = [1, 0], claimed }: { version?: readonly number[]; claimed?: number } = {},
): Uint8Array {
  const text = Buffer.from(header as string);
  const lengthBytes = version[0] === 1 ? 2 : 4;
  const prefix = Buffer.alloc(8 + lengthBytes);
  prefix.set([0x93, ...Buffer.from('NUMPY'), ...version]);
  const length = claimed ?? text.length;
  if (lengthBytes === 2) prefix.writeUInt16LE(length, 8);
  else prefix.writeUInt32LE(length, 8);
  return new Uint8Array(Buffer.concat([prefix, text, data]));
}

/** The header's text for a type string and a shape, both spelled as in Python. */
export function npyDict(descr: string, shape: string, fortranOrder = 'False'): string {
  return `{'descr': ${descr}, 'fortran_order': ${fortranOrder}, 'shape': ${shape}, }\n`;
}
