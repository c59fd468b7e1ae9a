import { type ByteWriter, createByteWriter } from './byte-writer.js';
import {
  createFunctionBody,
  local,
  type Subroutine,
  type Surroundings,
  type Table,
} from './function-body.js';

/** Types of values, by their bytes in a module. */
const valueTypes = { i32: 0x7f, v128: 0x7b } as const;

type ValueType = keyof typeof valueTypes;

/** Local variables of one type, one after another. */
export interface LocalVariables {
  readonly count: number;
  readonly type: ValueType;
}

/** A function of a module: its parameters, then its other variables, then its code. */
export interface ModuleFunction {
  readonly parameters: readonly ValueType[];
  readonly results: readonly ValueType[];
  readonly locals: readonly LocalVariables[];
  readonly code: Uint8Array;
}

/** The subroutines and tables that code uses: the same for all modules of one memory. */
export interface Library extends Surroundings {
  /** The subroutines, by their numbers. */
  readonly subroutines: () => readonly ModuleFunction[];
}

/**
 * Creates a library.
 * @param place copies a table into the memory and returns its address
 */
export function createLibrary(place: (table: ArrayBufferView) => number): Library {
  const subroutines = new Map<Subroutine, number>();
  const functions: ModuleFunction[] = [];
  const addresses = new Map<Table, number>();
  const library: Library = {
    subroutines: () => functions,
    tableAddress: (table) => {
      const known = addresses.get(table);
      if (known !== undefined) return known;
      const address = place(table.pack());
      addresses.set(table, address);
      return address;
    },
    subroutineIndex: (subroutine) => {
      const known = subroutines.get(subroutine);
      if (known !== undefined) return known;
      const { parameters, build } = subroutine;
      const body = createFunctionBody(parameters, library);
      // Those that it calls are complete, and have their numbers, before it has its own.
      build(body, ...Array.from({ length: parameters }, (_, i) => local(i)))(body);
      const index = functions.length;
      subroutines.set(subroutine, index);
      functions.push({
        parameters: Array.from({ length: parameters }, () => 'v128' as const),
        results: ['v128'],
        locals: [{ count: body.end() - parameters, type: 'v128' }],
        code: body.code.written().slice(),
      });
      return index;
    },
  };
  return library;
}

const functionType = 0x60;
const memoryKind = 2;
const functionKind = 0;
const endOfFunction = 0x0b;

/** Numbers of sections (WebAssembly Core Specification, "Sections"). */
const sections = { types: 1, imports: 2, functions: 3, exports: 7, code: 10 } as const;

const header = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

function writeName(writer: ByteWriter, name: string): void {
  const bytes = new TextEncoder().encode(name);
  writer.unsigned(bytes.length);
  writer.bytes(bytes);
}

function writeSection(
  writer: ByteWriter,
  section: number,
  write: (content: ByteWriter) => void,
): void {
  const content = createByteWriter();
  write(content);
  writer.byte(section);
  writer.unsigned(content.written().length);
  writer.bytes(content.written());
}

function writeTypes(writer: ByteWriter, types: readonly ValueType[]): void {
  writer.unsigned(types.length);
  for (const type of types) writer.byte(valueTypes[type]);
}

function writeCode(writer: ByteWriter, { locals, code }: ModuleFunction): void {
  const declarations = createByteWriter();
  declarations.unsigned(locals.length);
  for (const { count, type } of locals) {
    declarations.unsigned(count);
    declarations.byte(valueTypes[type]);
  }
  writer.unsigned(declarations.written().length + code.length + 1);
  writer.bytes(declarations.written());
  writer.bytes(code);
  writer.byte(endOfFunction);
}

/**
 * The bytes of a module that imports its memory as `env.memory`: the subroutines, and functions that are exported
 * under their numbers, from 0 on.
 */
export function moduleBytes(
  subroutines: readonly ModuleFunction[],
  exported: readonly ModuleFunction[],
): Uint8Array<ArrayBuffer> {
  const functions = [...subroutines, ...exported];
  const writer = createByteWriter();
  writer.bytes(header);
  // One type a function: equal types do no harm.
  writeSection(writer, sections.types, (content) => {
    content.unsigned(functions.length);
    for (const { parameters, results } of functions) {
      content.byte(functionType);
      writeTypes(content, parameters);
      writeTypes(content, results);
    }
  });
  writeSection(writer, sections.imports, (content) => {
    content.unsigned(1);
    writeName(content, 'env');
    writeName(content, 'memory');
    content.byte(memoryKind);
    // At least no pages, and no upper limit: whatever memory there is.
    content.byte(0);
    content.unsigned(0);
  });
  writeSection(writer, sections.functions, (content) => {
    content.unsigned(functions.length);
    functions.forEach((_, index) => content.unsigned(index));
  });
  writeSection(writer, sections.exports, (content) => {
    content.unsigned(exported.length);
    exported.forEach((_, i) => {
      writeName(content, `${i}`);
      content.byte(functionKind);
      content.unsigned(subroutines.length + i);
    });
  });
  writeSection(writer, sections.code, (content) => {
    content.unsigned(functions.length);
    for (const one of functions) writeCode(content, one);
  });
  return writer.written();
}
