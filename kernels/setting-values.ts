import { RequestError } from '../src/request-error.js';

/** A property of a kernel model that a user may choose. */
export interface KernelSetting {
  /** Key, as in `exp2.degree`. */
  readonly key: string;
  /** Its meaning, and the values that one may give. */
  readonly description: string;
}

/** A user's choices of a model's settings: values as text, by key. */
export type KernelSettings = ReadonlyMap<string, string>;

/** Refuses a setting that the model does not have. @throws RequestError for a key that is not among its settings */
export function checkKeys(
  model: string,
  known: readonly KernelSetting[],
  settings: ReadonlyMap<string, string>,
): void {
  const keys = known.map(({ key }) => key);
  const unknown = [...settings.keys()].find((key) => !keys.includes(key));
  if (unknown !== undefined)
    throw new RequestError(
      `the ${model} model has no setting ${JSON.stringify(unknown)}; ${keys.length === 0 ? 'it has none' : `it has ${keys.join(', ')}`}`,
    );
}

/** A number given as text, `inf` for infinity. @throws RequestError for anything else. */
export function numberValue(key: string, text: string): number {
  const value = /^\+?inf(inity)?$/i.test(text) ? Infinity : Number(text);
  if (text.trim() === '' || Number.isNaN(value))
    throw new RequestError(`${key} is ${JSON.stringify(text)}; give a number`);
  return value;
}

/** True or false, given as text. @throws RequestError for anything else */
export function booleanValue(key: string, text: string): boolean {
  if (text !== 'true' && text !== 'false')
    throw new RequestError(`${key} is ${JSON.stringify(text)}; give true or false`);
  return text === 'true';
}

/** The choice that a text names. @throws RequestError for a text that names none */
export function choiceValue<Choice extends string>(
  key: string,
  text: string,
  choices: readonly Choice[],
): Choice {
  const choice = choices.find((one) => one === text);
  if (choice === undefined)
    throw new RequestError(`${key} is ${JSON.stringify(text)}; give ${choices.join(', ')}`);
  return choice;
}

/** A reader of the settings that are given; it returns undefined for others. */
export function givenValues(
  texts: KernelSettings,
): <T>(key: string, parse: (key: string, text: string) => T) => T | undefined {
  return (key, parse) => {
    const text = texts.get(key);
    return text === undefined ? undefined : parse(key, text);
  };
}

/** The members of a record that are given. */
export function defined<Members extends object>(
  members: Members,
): { [Key in keyof Members]?: Exclude<Members[Key], undefined> } {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as { [Key in keyof Members]?: Exclude<Members[Key], undefined> };
}
