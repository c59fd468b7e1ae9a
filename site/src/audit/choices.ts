import type { AuditWords } from '../../../src/browser/index.js';
import { byId, create } from '../element.js';
import type { ListedFile } from './protocol.js';

/** A choice of a list. */
export function option(value: string, text = value): HTMLElement {
  return create('option', { value }, text);
}

/** A tensor that may be an output: as the command line names it, and its name in its file. */
type Choice = readonly [value: string, name: string];

/** The tensors that may be an output of the problem in a file; those of that file first. */
function outputChoices(listed: readonly ListedFile[], of: string): Choice[] {
  const inputs = ['q', 'k', 'v'];
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
function chooseLse(choices: readonly Choice[], prefix: string): void {
  const own = choices.find(([value]) => prefix !== '' && value === `${prefix}lse`);
  byId('lse', HTMLSelectElement).value = own?.[0] ?? '';
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
  return choices.map(([value]) => value);
}

/** Chooses what lies beside the output that is chosen: its LSE, gradients and split results. */
export function offerBeside(listed: readonly ListedFile[], of: string): void {
  const choices = outputChoices(listed, of);
  const prefix = prefixOf(byId('output', HTMLSelectElement).value);
  chooseLse(choices, prefix);
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
