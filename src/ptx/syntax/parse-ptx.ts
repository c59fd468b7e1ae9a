import {
  beginsDeclaration,
  readDeclaration,
  readLinkage,
  readParameters,
  skipAttribute,
} from './declarations.js';
import type { PtxFunction, PtxModule, VariableDeclaration } from './module.js';
import { readBlock, readNumbers, skipPragma } from './statements.js';
import { TokenReader } from './token-reader.js';

/** The state of a module while it is read. */
interface Draft {
  version: PtxModule['version'] | null;
  target: string | null;
  targetOptions: readonly string[];
  addressSize: 32 | 64;
  readonly variables: VariableDeclaration[];
  readonly functions: PtxFunction[];
  readonly aliases: Map<string, string>;
  readonly files: Map<number, string>;
}

/** Directives of a function that are read, and whose numbers are kept (PTX ISA, "Performance-Tuning Directives"). */
const functionDirectives: ReadonlySet<string> = new Set([
  ...['maxnreg', 'maxntid', 'reqntid', 'minnctapersm', 'maxnctapersm', 'noreturn'],
  ...['reqnctapercluster', 'maxclusterrank', 'explicitcluster', 'blocksareclusters'],
  ...['abi_preserve', 'abi_preserve_control'],
]);

/** The items that a module may have, as messages list them. */
const moduleItems =
  '.version, .target, .entry, .func, a variable, .file, .section, .pragma, .alias or the end of the text';

/** Reads `.version 8.7`. */
function readVersion(reader: TokenReader, draft: Draft): void {
  if (draft.version !== null) throw reader.error('expected one .version, found a second');
  reader.advance();
  const [, major, minor] = /^(\d{1,3})\.(\d{1,3})$/.exec(reader.text) ?? [];
  if (major === undefined || minor === undefined) reader.fail('a version such as 8.7');
  draft.version = { major: Number(major), minor: Number(minor) };
  reader.advance();
}

/** Reads `.target sm_90a, debug`. */
function readTarget(reader: TokenReader, draft: Draft): void {
  reader.advance();
  const place = reader.place();
  const target = reader.expectKind('name', 'a target such as sm_90a');
  if (!/^(sm|compute)_\d/.test(target))
    throw reader.error(`expected a target such as sm_90a, found "${target}"`, place);
  const options: string[] = [];
  while (reader.acceptMark(',')) options.push(reader.expectKind('name', 'an option of .target'));
  draft.target = target;
  draft.targetOptions = options;
}

/** Reads `.address_size 64`. */
function readAddressSize(reader: TokenReader, draft: Draft): void {
  reader.advance();
  if (reader.text !== '32' && reader.text !== '64') reader.fail('32 or 64');
  draft.addressSize = reader.text === '32' ? 32 : 64;
  reader.advance();
}

/** Reads `.file 1 "kernel.py", 1700000000, 1234`; the time and size are skipped. */
function readFile(reader: TokenReader, draft: Draft): void {
  reader.advance();
  const number = Number(reader.expectKind('number', 'the number of a file'));
  draft.files.set(number, reader.expectKind('text', 'the name of a file in double quotes'));
  while (reader.acceptMark(',')) reader.expectKind('number', 'a number');
}

/** Skips `.section .debug_info { … }`: data for debuggers, in which braces are balanced. */
function skipSection(reader: TokenReader): void {
  reader.advance();
  if (reader.kind !== 'dotted') reader.expectName('the name of a section');
  else reader.advance();
  const { line } = reader.place();
  reader.expectMark('{');
  for (let open = 1; open > 0; reader.advance()) {
    if (reader.isMark('{')) open++;
    else if (reader.isMark('}')) open--;
    else if (reader.kind === 'end') reader.fail(`"}" for the section of line ${line}`);
  }
}

/** Reads `.alias name, function;`. */
function readAlias(reader: TokenReader, draft: Draft): void {
  reader.advance();
  const alias = reader.expectName('the name of a function');
  reader.expectMark(',');
  draft.aliases.set(alias, reader.expectName('the name of a function'));
  reader.expectMark(';');
}

/** Reads the directives between the parameters of a function and its body. */
function readFunctionDirectives(reader: TokenReader): ReadonlyMap<string, readonly number[]> {
  const directives = new Map<string, readonly number[]>();
  while (reader.kind === 'dotted') {
    if (reader.isDotted('pragma')) skipPragma(reader);
    else if (functionDirectives.has(reader.text)) {
      const name = reader.text;
      reader.advance();
      directives.set(name, readNumbers(reader));
    } else reader.fail('a directive of functions (.reqntid, .maxnreg, …), "{" or ";"');
  }
  return directives;
}

/** Reads `.entry name (…) … { … }`, `.func (…) name (…) … { … }`, or either without a body. */
function readFunction(reader: TokenReader, linkage: PtxFunction['linkage']): PtxFunction {
  const place = reader.place();
  const kind = reader.isDotted('entry') ? 'entry' : 'func';
  reader.advance();
  if (reader.isDotted('attribute')) skipAttribute(reader);
  const returns = kind === 'func' ? readParameters(reader) : [];
  const name = reader.expectName(`the name of ${kind === 'entry' ? 'a kernel' : 'a function'}`);
  const parameters = readParameters(reader);
  const directives = readFunctionDirectives(reader);
  const body = reader.acceptMark(';') ? null : readBody(reader);
  return { kind, name, linkage, returns, parameters, directives, body, place };
}

function readBody(reader: TokenReader): PtxFunction['body'] {
  if (!reader.isMark('{')) reader.fail('"{" and a body, or ";"');
  return readBlock(reader);
}

/** Reads one item of a module. */
function readItem(reader: TokenReader, draft: Draft): void {
  const directives: Readonly<Record<string, (reader: TokenReader, draft: Draft) => void>> = {
    version: readVersion,
    target: readTarget,
    address_size: readAddressSize,
    file: readFile,
    section: skipSection,
    pragma: skipPragma,
    alias: readAlias,
  };
  if (reader.kind !== 'dotted') {
    if (!reader.acceptMark(';')) reader.fail(moduleItems);
    return;
  }
  const read = Object.hasOwn(directives, reader.text) ? directives[reader.text] : undefined;
  if (draft.version === null && read !== readVersion) reader.fail('.version at the beginning');
  if (read !== undefined) return read(reader, draft);
  if (draft.target === null) reader.fail('.target behind .version');
  const linkage = readLinkage(reader);
  if (reader.isDotted('entry') || reader.isDotted('func'))
    draft.functions.push(readFunction(reader, linkage));
  else if (beginsDeclaration(reader)) draft.variables.push(...readDeclaration(reader, linkage));
  else reader.fail(linkage === null ? moduleItems : '.entry, .func or a variable');
}

/**
 * Parses a text of PTX into a module, as written: names are not resolved, and instructions are not looked up. The time is
 * linear in the text.
 *
 * @param fileName name of the text in messages
 * @throws RequestError for the first place where the syntax is wrong: line, column, the expected text and the text that is
 * there
 */
export function parsePtx(text: string, fileName = 'PTX'): PtxModule {
  const reader: TokenReader = new TokenReader(text, fileName);
  const draft: Draft = {
    version: null,
    target: null,
    targetOptions: [],
    addressSize: 32,
    variables: [],
    functions: [],
    aliases: new Map(),
    files: new Map(),
  };
  while (reader.kind !== 'end') readItem(reader, draft);
  const { version, target } = draft;
  if (version === null) reader.fail('.version at the beginning');
  if (target === null) reader.fail('.target behind .version');
  return { ...draft, version, target };
}
