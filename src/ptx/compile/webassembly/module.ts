import { type ByteWriter, createByteWriter } from './byte-writer.js';
import {
  createFunctionBody,
  type FunctionBody,
  type Subroutine,
  local,
  type Surroundings,
  type TableAddress,
  type ValueType,
  valueTypes,
} from './function-body.js';

/** A module under construction; all its functions work on one imported memory. */
export interface ModuleWriter {
  /**
   * Adds a function that is exported under its name and gives nothing.
   *
   * @param write writes its code; parameters are the first local variables
   */
  readonly define: (
    name: string,
    parameters: readonly ValueType[],
    write: (body: FunctionBody) => void,
  ) => void;
  /** The bytes of the module, which imports `env.memory`. */
  readonly finish: () => Uint8Array<ArrayBuffer>;
}

interface DefinedFunction {
  readonly parameters: readonly ValueType[];
  readonly results: readonly ValueType[];
  readonly exportedAs: string | null;
  bytes: Uint8Array;
}

const functionType = 0x60;
const memoryKind = 2;
const functionKind = 0;

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

/** An empty module. */
export function createModuleWriter(tableAddress: TableAddress): ModuleWriter {
  const functions: DefinedFunction[] = [];
  const subroutines = new Map<Subroutine, number>();
  const surroundings: Surroundings = { subroutineIndex, tableAddress };

  /** A function's number is its place in the list, which it takes before its body is written. */
  function add(definition: Omit<DefinedFunction, 'bytes'>): DefinedFunction {
    const defined = { ...definition, bytes: new Uint8Array() };
    functions.push(defined);
    return defined;
  }

  function subroutineIndex(subroutine: Subroutine): number {
    const known = subroutines.get(subroutine);
    if (known !== undefined) return known;
    const index = functions.length;
    subroutines.set(subroutine, index);
    const parameters = Array.from({ length: subroutine.parameters }, (): ValueType => 'v128');
    const defined = add({ parameters, results: ['v128'], exportedAs: null });
    const body = createFunctionBody(subroutine.parameters, surroundings);
    subroutine.build(body, ...parameters.map((_, i) => local(i)))(body);
    defined.bytes = body.finish();
    return index;
  }

  return {
    define: (name, parameters, write) => {
      const defined = add({ parameters, results: [], exportedAs: name });
      const body = createFunctionBody(parameters.length, surroundings);
      write(body);
      defined.bytes = body.finish();
    },
    finish: () => moduleBytes(functions),
  };
}

function moduleBytes(functions: readonly DefinedFunction[]): Uint8Array<ArrayBuffer> {
  const writer = createByteWriter();
  writer.bytes(header);
  // One type a function: validation does not mind equal types.
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
    const exported = functions.flatMap(({ exportedAs }, index) =>
      exportedAs === null ? [] : [{ name: exportedAs, index }],
    );
    content.unsigned(exported.length);
    for (const { name, index } of exported) {
      writeName(content, name);
      content.byte(functionKind);
      content.unsigned(index);
    }
  });
  writeSection(writer, sections.code, (content) => {
    content.unsigned(functions.length);
    for (const { bytes } of functions) {
      content.unsigned(bytes.length);
      content.bytes(bytes);
    }
  });
  return Uint8Array.from(writer.written());
}
