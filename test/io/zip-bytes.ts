import { crc32, deflateRawSync } from 'node:zlib';

/** One member of a zip archive put together by hand; what is left out is what it should be. */
export interface ZipPart {
  readonly name: string;
  readonly content: Uint8Array;
  readonly deflate?: boolean;
  readonly localName?: string;
  readonly declaredSize?: number;
  readonly crc?: number;
  readonly flags?: number;
  readonly method?: number;
  readonly localMethod?: number;
  readonly offset?: number;
}

function record(signature: number, fields: readonly (readonly [number, number])[]): Buffer {
  const parts = [[4, signature] as const, ...fields].map(([bytes, value]) => {
    const part = Buffer.alloc(bytes);
    part.writeUIntLE(value, 0, bytes);
    return part;
  });
  return Buffer.concat(parts);
}

/** A zip archive (APPNOTE.TXT 6.3, without zip64) of these members. */
export function zipBytes(parts: readonly ZipPart[]): Uint8Array {
  const body: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const part of parts) {
    const stored = part.deflate === true ? deflateRawSync(part.content) : part.content;
    const name = Buffer.from(part.name);
    const localName = Buffer.from(part.localName ?? part.name);
    const method = part.method ?? (part.deflate === true ? 8 : 0);
    const sizes = [
      [4, part.crc ?? crc32(part.content)],
      [4, stored.length],
      [4, part.declaredSize ?? part.content.length],
    ] as const;
    const flags = (part.flags ?? 0) | 0x800;
    const header = record(0x04034b50, [
      [2, 20],
      [2, flags],
      [2, part.localMethod ?? method],
      [4, 0],
      ...sizes,
      [2, localName.length],
      [2, 0],
    ]);
    directory.push(
      record(0x02014b50, [
        [2, 20],
        [2, 20],
        [2, flags],
        [2, method],
        [4, 0],
        ...sizes,
        [2, name.length],
        [2, 0],
        [2, 0],
        [2, 0],
        [2, 0],
        [4, 0],
        [4, part.offset ?? offset],
      ]),
      name,
    );
    body.push(header, localName, Buffer.from(stored));
    offset += header.length + localName.length + stored.length;
  }
  const central = Buffer.concat(directory);
  const end = record(0x06054b50, [
    [2, 0],
    [2, 0],
    [2, parts.length],
    [2, parts.length],
    [4, central.length],
    [4, offset],
    [2, 0],
  ]);
  return new Uint8Array(Buffer.concat([...body, central, end]));
}
