import { readText } from '../../io/index.js';
import { type ContractFile, parseContract } from '../../ptx/launch/index.js';
import { plainText } from '../../words/index.js';
import { contractNames } from './contract-names.js';

/** A contract with the name of its file, for messages. */
export interface GivenContract {
  readonly file: ContractFile;
  readonly where: string;
}

/** The most bytes of a contract's file. */
const mostContractBytes = 2 ** 20;

/**
 * Reads the file of a contract.
 * @throws RequestError for a file that cannot be read or is no contract
 */
export async function openContract(path: string): Promise<GivenContract> {
  const text = await readText(path, mostContractBytes);
  return { file: await parseContract(text, path, contractNames), where: plainText(path) };
}
