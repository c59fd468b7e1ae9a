/**
 * TypeScript that writes the structs of a WebAssembly module: for each `@unmanaged class` of its AssemblyScript
 * sources an interface of its fields, and an object with its size and a function that writes it into memory.
 * Offsets are those that the compiler gave the fields, so that the two sides cannot disagree.
 */

/** `DecoratorFlags.Unmanaged` of the compiler. */
const unmanaged = 16;

/** By type of a field: its type in TypeScript, and the method of a DataView that writes it. */
const fieldTypes = {
  bool: ['boolean', 'setUint8'],
  i32: ['number', 'setInt32'],
  u32: ['number', 'setUint32'],
  usize: ['number', 'setUint32'],
  f32: ['number', 'setFloat32'],
  f64: ['number', 'setFloat64'],
};

/** A field of a class as the compiler laid it out; null for a method. */
function fieldOf(name, { instance }, className) {
  if (instance?.memoryOffset === undefined || instance.memoryOffset < 0) return null;
  // Another struct is its address.
  const type = instance.type.getClass() === null ? instance.type.toString() : 'usize';
  if (!Object.hasOwn(fieldTypes, type))
    throw new Error(`${className}.${name} is of type ${type}, which cannot be written`);
  return { name, offset: instance.memoryOffset, type };
}

/** The structs that a compiled program uses, in the order of their sources. */
function structsOf(program) {
  const structs = [];
  for (const prototype of program.elementsByName.values())
    for (const instance of prototype.instances?.values() ?? []) {
      const { source } = instance.declaration.range;
      if (!(instance.decoratorFlags & unmanaged) || source.normalizedPath.startsWith('~lib/'))
        continue;
      const fields = [...instance.members]
        .map(([name, member]) => fieldOf(name, member, instance.name))
        .filter((field) => field !== null);
      const bytes = instance.nextMemoryOffset;
      structs.push({ name: instance.name, source: source.normalizedPath, fields, bytes });
    }
  return structs;
}

function writerOf({ name, source, fields, bytes }) {
  const constant = name[0].toLowerCase() + name.slice(1);
  const line = ({ name: field, offset, type }) => {
    const value = type === 'bool' ? `Number(fields.${field})` : `fields.${field}`;
    const order = type === 'bool' ? '' : ', true';
    return `    memory.${fieldTypes[type][1]}(at + ${offset}, ${value}${order});`;
  };
  return [
    `/** The fields of \`${name}\` in ${source}. */`,
    `export interface ${name} {`,
    ...fields.map(({ name: field, type }) => `  readonly ${field}: ${fieldTypes[type][0]};`),
    `}`,
    `export const ${constant} = {`,
    `  bytes: ${bytes},`,
    `  write(memory: DataView, at: number, fields: ${name}): void {`,
    ...fields.map(line),
    `  },`,
    `};`,
    ``,
  ].join('\n');
}

/** A transform of the compiler that calls `take` with the TypeScript for all structs of a module. */
export function structWriters(take) {
  return class {
    afterCompile() {
      take(structsOf(this.program).map(writerOf).join('\n'));
    }
  };
}
