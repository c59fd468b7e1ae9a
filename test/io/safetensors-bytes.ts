/** A safetensors file put together by hand: the header's bytes or text, and the data. */
export function safetensorsBytes(
  header: string | Uint8Array | object,
  data: Uint8Array = new Uint8Array(0),
  claimed?: bigint,
): Uint8Array {
  const json = typeof header === 'string' || header instanceof Uint8Array;
  const text = Buffer.from(json ? (header as string) : JSON.stringify(header));
  const bytes = new Uint8Array(8 + text.length + data.length);
  new DataView(bytes.buffer).setBigUint64(0, claimed ?? BigInt(text.length), true);
  bytes.set(text, 8);
  bytes.set(data, 8 + text.length);
  return bytes;
}

/** The description of one tensor. */
export function described(
  dtype: unknown,
  shape: unknown,
  begin: unknown,
  end: unknown,
): { dtype: unknown; shape: unknown; data_offsets: unknown } {
  return { dtype, shape, data_offsets: [begin, end] };
}
