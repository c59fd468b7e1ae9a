import type { AuditWords } from '../../../src/browser/index.js';
import { byId, create } from '../element.js';
import type { ListedFile } from './protocol.js';

/** A choice of a list. */
export function option(value: string, text = value): HTMLElement {
  return create('option', { value }, text);
}

/** A tensor that may be an output: as the command line names it, and its name in its file. */
type Choice = readonly [value: string, name: string];

/** The problem's tensors. */
const inputNames = ['q', 'k', 'v'] as const;

/** The tensor that is read as an input, by its name in the file. */
function chosenInput(name: (typeof inputNames)[number]): string {
  const { value } = byId(name, HTMLSelectElement);
  return value === '' ? name : value.slice(1);
}

/** What the problem's tensors and its likely O are read from, in words, where these have other names; null where none has. */
export function describeInputs(): string | null {
  const others = [
    ...inputNames.map((name) => [name, chosenInput(name)] as const),
    ['O', byId('output', HTMLSelectElement).value.replace(/^:/, '')] as const,
  ].filter(([name, from]) => from !== name && from !== '');
  const isOwn = others.every(([name]) => name === 'O');
  return isOwn ? null : others.map(([name, from]) => `${from} as ${name}`).join(', ');
}

/** A file that can be read. */
type ReadableFile = Extract<ListedFile, { readonly tensors: unknown }>;

/** The tensors of a file, and what they likely are; none of a file that cannot be read. */
function tensorsOf(
  listed: readonly ListedFile[],
  of: string,
): Pick<ReadableFile, 'tensors' | 'likely'> {
  const file = listed.find(({ name }) => name === of);
  return file !== undefined && 'tensors' in file ? file : { tensors: [], likely: {} };
}

/**
 * Offers where q, k and v are, for a file that has them under other names: what they usually are called is chosen.
 * @returns whether the file has all three under their own
 */
export function offerInputs(listed: readonly ListedFile[], of: string): boolean {
  const { tensors, likely } = tensorsOf(listed, of);
  const has = (name: string) => tensors.some((tensor) => tensor.name === name);
  for (const name of inputNames) {
    const others = tensors.map((tensor) => option(`:${tensor.name}`, tensor.name));
    const select = byId(name, HTMLSelectElement);
    select.replaceChildren(
      ...(has(name) ? [option('', name)] : [option('', 'choose one')]),
      ...others,
    );
    const found = likely[name];
    select.value = found === undefined ? '' : `:${found}`;
  }
  const isUsual = inputNames.every(has);
  byId('inputs', HTMLElement).hidden = isUsual;
  return isUsual;
}

/** The tensors that may be an output of the problem in a file; those of that file first. */
function outputChoices(listed: readonly ListedFile[], of: string): Choice[] {
  const inputs = inputNames.map((name) => chosenInput(name));
  const tensors = listed.flatMap((file) =>
    'tensors' in file ? file.tensors.map((tensor) => ({ file: file.name, tensor })) : [],
  );
  return tensors
    .filter(({ file, tensor: { name } }) => file !== of || !inputs.includes(name))
    .sort((a, b) => Number(a.file !== of) - Number(b.file !== of))
    .map(({ file, tensor: { name } }) => [`${file === of ? '' : file}:${name}`, name] as const);
}

/** Fields for the other results that files may hold: the word, the label, and the tensors that it is shown for. */
const others: readonly (readonly [word: keyof AuditWords, label: string, named: RegExp])[] = [
  ['dout', 'dO', /^(dout|do)$/],
  ['dq', 'dQ', /^dq$/],
  ['dk', 'dK', /^dk$/],
  ['dv', 'dV', /^dv$/],
  ['dbias', 'dBias', /^dbias$/],
  ['dsink', 'dSink', /^dsink$/],
  ['outPartial', 'O of each split', /^out_partial$/],
  ['lsePartial', 'LSE of each split', /^lse_partial$/],
];

/** The fields that name what is judged. */
export const judgedWords = [
  'output',
  'lse',
  'dq',
  'dk',
  'dv',
  'dbias',
  'dsink',
  'outPartial',
  'lsePartial',
] as const;

/** What comes before the name of an output: its file, and its part of the file. */
function prefixOf(output: string): string {
  return output.replace(/(out|o)$/, '');
}

/** The name of a tensor without its part of the file. */
function lastOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}

/** Chooses the LSE beside the chosen output. */
function chooseLse(choices: readonly Choice[], prefix: string, likely: string | undefined): void {
  const own = choices.find(([value]) => prefix !== '' && value === `${prefix}lse`);
  byId('lse', HTMLSelectElement).value = own?.[0] ?? (likely === undefined ? '' : `:${likely}`);
}

/** Offers the other results where there are any; those beside the output are chosen, and dO with gradients. */
function offerOthers(choices: readonly Choice[], prefix: string): void {
  const offered = others.flatMap(([word, label, named]) => {
    const alike = choices.flatMap(([value, name]) => {
      const last = lastOf(name);
      return named.test(last) ? [{ value, before: value.slice(0, -last.length) }] : [];
    });
    if (alike.length === 0) return [];
    const select = document.createElement('select');
    select.name = word;
    select.append(option('', 'none'), ...choices.map(([value]) => option(value)));
    const own = alike.find(({ before }) => before === prefix);
    select.value = (own ?? (word === 'dout' ? alike[0] : undefined))?.value ?? '';
    return [{ word, select, field: create('label', {}, label, select) }];
  });
  const hasGradients = offered.some(
    ({ word, select }) => word !== 'dout' && word.startsWith('d') && select.value !== '',
  );
  for (const { word, select } of offered) if (word === 'dout' && !hasGradients) select.value = '';
  byId('others', HTMLElement).replaceChildren(...offered.map(({ field }) => field));
}

/** The outputs of a problem's own files that look like a kernel's O, as the command line names them. */
export function likelyOutputs(listed: readonly ListedFile[], of: string): readonly string[] {
  const choices = outputChoices(listed, of).filter(([, name]) => /^(out|o)$/.test(lastOf(name)));
  const { out } = tensorsOf(listed, of).likely;
  return [
    ...new Set([...(out === undefined ? [] : [`:${out}`]), ...choices.map(([value]) => value)]),
  ];
}

/** Chooses what lies beside the output that is chosen: its LSE, gradients and split results. */
export function offerBeside(listed: readonly ListedFile[], of: string): void {
  const choices = outputChoices(listed, of);
  const prefix = prefixOf(byId('output', HTMLSelectElement).value);
  const { likely } = tensorsOf(listed, of);
  const isLikely = byId('output', HTMLSelectElement).value === `:${likely.out}`;
  chooseLse(choices, prefix, isLikely ? likely.lse : undefined);
  offerOthers(choices, prefix);
}

/** Offers results of a problem to judge; the first that looks like a kernel's is chosen, with what lies beside it. */
export function offerOutputs(listed: readonly ListedFile[], of: string): void {
  const choices = outputChoices(listed, of);
  const offer = (id: string, empty: string): HTMLSelectElement => {
    const select = byId(id, HTMLSelectElement);
    select.replaceChildren(option('', empty), ...choices.map(([value]) => option(value)));
    return select;
  };
  offer('lse', 'none');
  offer('output', 'choose one').value = likelyOutputs(listed, of)[0] ?? '';
  offerBeside(listed, of);
}
