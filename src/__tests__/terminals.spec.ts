/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { reconnectTerminals } from '../terminals';

interface IFake {
  name: string;
  connectionStatus: string;
  isDisposed: boolean;
  reconnect: jest.Mock;
}

const terminal = (name: string, connectionStatus: string): IFake => ({
  name,
  connectionStatus,
  isDisposed: false,
  reconnect: jest.fn().mockResolvedValue(undefined)
});

const shellWith = (...sessions: unknown[]) =>
  ({
    widgets: () => sessions.map(session => ({ content: { session } })).values()
  }) as never;

describe('reconnectTerminals', () => {
  it('connects those that were cut and still exist, after the list was read', async () => {
    const cut = terminal('1', 'disconnected');
    const trying = terminal('2', 'connecting');
    const whole = terminal('3', 'connected');
    const gone = terminal('4', 'disconnected');
    const refreshRunning = jest.fn(() => {
      expect(cut.reconnect).not.toHaveBeenCalled();
      gone.isDisposed = true;
      return Promise.resolve();
    });
    const shell = shellWith(cut, trying, whole, gone, undefined, {});
    await reconnectTerminals(shell, { refreshRunning });
    expect(
      [cut, trying, whole, gone].map(
        ({ reconnect }) => reconnect.mock.calls.length
      )
    ).toEqual([1, 1, 0, 0]);
  });

  it('asks nothing where no terminal was cut', async () => {
    const refreshRunning = jest.fn();
    await reconnectTerminals(shellWith(terminal('1', 'connected')), {
      refreshRunning
    });
    expect(refreshRunning).not.toHaveBeenCalled();
  });

  it('leaves it to the person where the server refuses', async () => {
    const warned = jest.spyOn(console, 'warn').mockImplementation();
    await reconnectTerminals(shellWith(terminal('1', 'disconnected')), {
      refreshRunning: () => Promise.reject(new Error('no terminals here'))
    });
    expect(warned).toHaveBeenCalled();
    warned.mockRestore();
  });
});
