import { keepOffline } from './element.js';

keepOffline();
