import { workerData } from 'piscina';
import { machineFiles } from '../../io/index.js';
import { threadWork } from '../audit/index.js';

/** What a worker thread of an audit does, one request at a time. */
export const { measureRequest, measureGroup, boundRequest } = threadWork(workerData, machineFiles);
