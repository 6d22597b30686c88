package dev.tallylock.blocking;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.tallylock.Applied;
import dev.tallylock.BusyException;
import dev.tallylock.Expiry;
import dev.tallylock.InvalidArgumentException;
import dev.tallylock.LostException;
import dev.tallylock.Owner;
import dev.tallylock.OutcomeUnknownException;
import dev.tallylock.Tallylock;
import dev.tallylock.testing.ServerKind;
import dev.tallylock.testing.TestServer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** The blocking face as Java sees it. */
class ClientTest {
    private static final Duration FIFTEEN_MINUTES = Duration.ofMinutes(15);
    private static final Duration THIRTY_SECONDS = Duration.ofSeconds(30);
    private static final String PENDING = "session:42:billableSecondsPending";
    private static final String INVOICE = "invoice:42";

    @Test
    void aCounterIsAddedToReadDrainedAndFinished() {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Counter counter = client.counter(PENDING, FIFTEEN_MINUTES);
            assertNull(counter.read());
            assertEquals(30, counter.add(30));
            assertEquals(Long.MAX_VALUE, counter.add(Long.MAX_VALUE - 30));
            assertEquals(Long.MAX_VALUE, counter.drain());
            assertEquals(0L, counter.read());
            assertEquals(0L, counter.finish());
            assertNull(counter.finish());
        }
    }

    @Test
    void keysMayBeBytesAndExpiryFixed() {
        try (Client client = Tallylock.connectBlocking("memory://", Duration.ofSeconds(2), Owner.None.INSTANCE)) {
            byte[] key = {0, (byte) 0xff};
            client.counter(key, FIFTEEN_MINUTES, Expiry.Fixed).add(1);
            client.getMemory().advance(Duration.ofMinutes(5));
            client.counter(key, FIFTEEN_MINUTES, Expiry.Fixed).add(1);
            List<MemoryKey> keys = client.getMemory().keys();
            assertEquals(1, keys.size());
            assertArrayEquals(key, keys.get(0).getKey());
            assertArrayEquals("2".getBytes(StandardCharsets.UTF_8), keys.get(0).getValue());
            assertEquals(Duration.ofMinutes(10), keys.get(0).getTtl());
        }
    }

    @Test
    void aValueIsChangedOnlyWhereItIs() {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Value value = client.value("session:42:ctx");
            assertNull(value.get());
            assertFalse(value.replaceIfPresent("v", FIFTEEN_MINUTES));
            client.getMemory().put("session:42:ctx", "v", null);
            assertTrue(value.compareAndSet("v", "w", FIFTEEN_MINUTES));
            assertFalse(value.compareAndSet("v", "x", FIFTEEN_MINUTES));
            assertTrue(value.touch(FIFTEEN_MINUTES));
            assertArrayEquals("w".getBytes(StandardCharsets.UTF_8), value.get());
        }
    }

    @Test
    void aLeaseExcludesOthersUntilItIsReleased() throws InterruptedException {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Lock lock = client.lock(INVOICE, THIRTY_SECONDS);
            Lease lease = lock.acquire();
            assertTrue(lease.isValid());
            assertTrue(lease.getFence() > 0);
            lease.ensure(Duration.ofSeconds(2));
            BusyException busy = assertThrows(BusyException.class, lock::acquire);
            assertEquals("busy", busy.getCode());
            assertEquals(INVOICE, busy.getKey());
            assertEquals(Applied.No, busy.getApplied());
            client.getMemory().advance(Duration.ofSeconds(10));
            lease.extend();
            lease.extend(Duration.ofMinutes(1));
            assertTrue(lease.getRemaining().compareTo(THIRTY_SECONDS) > 0);
            lease.release();
            lock.acquire(Duration.ofSeconds(5)).release();
        }
    }

    @Test
    void aLostLeaseTellsWhy() throws InterruptedException {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Lease lease = client.lock(INVOICE, THIRTY_SECONDS).acquire();
            client.getMemory().advance(Duration.ofMinutes(1));
            LostException lost = assertThrows(LostException.class, () -> lease.ensure(Duration.ZERO));
            assertEquals("expired", lost.getReason());
            assertEquals(Duration.ZERO, lease.getRemaining());
        }
    }

    @Test
    void aBlockReturnsItsResultAndReleases() throws Exception {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Lock lock = client.lock(INVOICE, THIRTY_SECONDS);
            long first = lock.withLock(lease -> lease.getFence());
            long second = lock.withLock(Duration.ofSeconds(5), Lease::getFence);
            assertTrue(second > first);
        }
    }

    @Test
    void aBlockThrowsItsOwnCheckedExceptionAndReleases() throws Exception {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Lock lock = client.lock(INVOICE, THIRTY_SECONDS);
            IOException raised = new IOException("the block's own");
            IOException caught = assertThrows(IOException.class, () -> lock.withLock(lease -> {
                throw raised;
            }));
            assertSame(raised, caught);
            lock.acquire().release();
        }
    }

    @Test
    void aThreadThatIsInterruptedStopsWaiting() throws InterruptedException {
        TestServer server = TestServer.Companion.empty(ServerKind.Valkey);
        server.plant(INVOICE, "of another library");
        try (Client client = Tallylock.connectBlocking(server.getUrl())) {
            AtomicReference<Throwable> thrown = new AtomicReference<>();
            CountDownLatch started = new CountDownLatch(1);
            Thread waiter = new Thread(() -> {
                started.countDown();
                thrown.set(assertThrows(
                        InterruptedException.class,
                        () -> client.lock(INVOICE, THIRTY_SECONDS).acquire(Duration.ofMinutes(10))));
            });
            waiter.start();
            started.await();
            waiter.interrupt();
            waiter.join();
            assertNotNull(thrown.get());
        }
    }

    @Test
    void wrongArgumentsAreRefused() {
        assertThrows(InvalidArgumentException.class, () -> Tallylock.connectBlocking("http://127.0.0.1"));
        try (Client client = Tallylock.connectBlocking("memory://")) {
            assertThrows(InvalidArgumentException.class, () -> client.counter("", FIFTEEN_MINUTES));
            assertThrows(InvalidArgumentException.class, () -> client.counter(PENDING, Duration.ZERO));
            assertThrows(InvalidArgumentException.class, () -> client.lock(INVOICE, Duration.ofSeconds(-1)));
            Lock lock = client.lock(INVOICE, THIRTY_SECONDS);
            assertThrows(InvalidArgumentException.class, () -> lock.acquire(Duration.ofNanos(-1)));
        }
    }

    @Test
    void aLostReplyIsToldAsSuch() {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Counter counter = client.counter(PENDING, FIFTEEN_MINUTES);
            counter.add(1);
            client.getMemory().loseNextReply();
            OutcomeUnknownException unknown = assertThrows(OutcomeUnknownException.class, () -> counter.add(5));
            assertEquals(Applied.Maybe, unknown.getApplied());
            assertEquals(6L, counter.read());
        }
    }
}
