package dev.tallylock.blocking;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.tallylock.AddResult;
import dev.tallylock.Added;
import dev.tallylock.AlreadyHeldException;
import dev.tallylock.Applied;
import dev.tallylock.BusyException;
import dev.tallylock.Claim;
import dev.tallylock.ClaimState;
import dev.tallylock.ConflictException;
import dev.tallylock.Expiry;
import dev.tallylock.FencedOffException;
import dev.tallylock.InvalidArgumentException;
import dev.tallylock.LeaseState;
import dev.tallylock.LostException;
import dev.tallylock.NotAnIntegerException;
import dev.tallylock.Owner;
import dev.tallylock.OutcomeUnknownException;
import dev.tallylock.RefusedException;
import dev.tallylock.Renewal;
import dev.tallylock.SweepReport;
import dev.tallylock.Tallylock;
import dev.tallylock.testing.ServerKind;
import dev.tallylock.testing.TestServer;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** The blocking face as Java sees it. */
class ClientTest {
    private static final Duration FIFTEEN_MINUTES = Duration.ofMinutes(15);
    private static final Duration THIRTY_SECONDS = Duration.ofSeconds(30);
    private static final String PENDING = "session:42:billableSecondsPending";
    private static final String INVOICE = "invoice:42";

    @Test
    void whatWasCountedIsRead() throws InterruptedException {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Lease lease = client.lock(INVOICE, THIRTY_SECONDS).acquire();
            assertNotNull(client.getMemory());
            client.getMemory().advance(Duration.ofSeconds(2));
            lease.release();
            Metrics metrics = client.metrics();
            assertEquals(1, metrics.getGranted());
            assertEquals(Duration.ofSeconds(2), metrics.getHeld());
            assertEquals(0, metrics.getLost().getTotal());
            assertNull(metrics.getSmallestMargin());
            assertEquals(metrics, client.metrics());
        }
    }

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
    void anAddWithAnIdempotencyKeyCountsOnce() {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Counter counter = client.counter(PENDING, FIFTEEN_MINUTES);
            assertEquals(new Added(30, true), counter.add(30, "evt-1"));
            assertFalse(counter.add(30, "evt-1", Duration.ofHours(1)).getApplied());
            byte[] key = {0, (byte) 0xff};
            assertEquals(31, counter.add(1, key).getTotal());
            assertEquals(31, counter.add(1, key, Duration.ofHours(1)).getTotal());
            assertThrows(ConflictException.class, () -> counter.add(31, "evt-1"));
        }
    }

    @Test
    void aClaimIsCommittedOrAborted() throws InterruptedException {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Counter counter = client.counter(PENDING, FIFTEEN_MINUTES);
            Lease lease = client.lock(INVOICE, THIRTY_SECONDS).acquire();
            assertNull(counter.claim("run-1"));
            counter.add(30);
            assertEquals(new Claim(30, ClaimState.Open), counter.claim("run-1", lease.getFence()));
            assertThrows(FencedOffException.class, () -> counter.drain(lease.getFence() - 1));
            OpenClaim open = counter.claims().get(0);
            assertEquals("run-1", open.getIdText());
            assertEquals(30, open.getAmount());
            assertEquals(Duration.ofDays(7), open.getRemaining());
            counter.commit("run-1", 30);
            counter.add(5);
            counter.claim("run-2");
            assertEquals(5, counter.abort("run-2"));
            assertEquals(5L, counter.drain(lease.getFence()));
            assertEquals(List.of(), counter.claims());
        }
    }

    @Test
    void aBatchHasAResultForEachEntry() {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            client.getMemory().put(INVOICE, "text", null);
            Counter counter = client.counter(PENDING, FIFTEEN_MINUTES);
            Counter bad = client.counter(INVOICE, FIFTEEN_MINUTES);
            List<AddResult> results =
                    client.addMany(List.of(counter.entry(30), bad.entry(1), counter.entry(5, "evt-1")));
            assertEquals(new AddResult.Success(new Added(30, true)), results.get(0));
            AddResult.Failure failure = (AddResult.Failure) results.get(1);
            assertEquals("not_an_integer", failure.getException().getCode());
            assertThrows(NotAnIntegerException.class, failure::getOrThrow);
            assertEquals(35, results.get(2).getOrThrow().getTotal());
        }
    }

    @Test
    void aScanIsIterableAndAStream() {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            client.counter("session:1", FIFTEEN_MINUTES).add(30);
            client.counter("session:2", FIFTEEN_MINUTES).add(5);
            long sum = 0;
            Scan scan = client.scan("session:*");
            for (CounterFound found : scan) {
                sum += found.getTotal();
            }
            assertEquals(35, sum);
            assertNull(scan.getCursor());
            assertEquals(35, client.scan("session:*").stream().mapToLong(CounterFound::getTotal).sum());
            CounterFound soon = client.expiring("session:1", Duration.ofHours(1)).iterator().next();
            assertArrayEquals("session:1".getBytes(StandardCharsets.UTF_8), soon.getKey());
            assertEquals(FIFTEEN_MINUTES, soon.getRemaining());
            assertFalse(client.expiring("session:*", Duration.ofMinutes(1)).iterator().hasNext());
        }
    }

    @Test
    void anUpdateThrowsTheCheckedExceptionOfItsFunction() throws Exception {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Value value = client.value("session:42:ctx");
            assertNull(value.update(FIFTEEN_MINUTES, present -> present));
            client.getMemory().put("session:42:ctx", "v", null);
            byte[] doubled = "vv".getBytes(StandardCharsets.UTF_8);
            assertArrayEquals(doubled, value.update(FIFTEEN_MINUTES, present -> new byte[] {present[0], present[0]}));
            IOException raised = new IOException("the function's own");
            assertSame(raised, assertThrows(IOException.class, () -> value.update(FIFTEEN_MINUTES, present -> {
                throw raised;
            })));
            assertArrayEquals(doubled, value.get());
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
            assertThrows(AlreadyHeldException.class, lock::acquire);
            Lock other = client.lock(INVOICE, THIRTY_SECONDS);
            BusyException busy = assertThrows(BusyException.class, other::acquire);
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
    void aLeaseChangesHandsAndItsEndIsTold() throws Exception {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            Renewal renewal = Renewal.every(Duration.ofSeconds(5));
            Lease lease = client.lock(INVOICE, THIRTY_SECONDS, renewal, Duration.ofMinutes(10)).acquire();
            lease.verify(Duration.ofSeconds(2));
            assertSame(LeaseState.Held.INSTANCE, lease.getState());
            String token = lease.transfer();
            assertSame(LeaseState.LetGo.INSTANCE, lease.getEnd().toCompletableFuture().get(20, TimeUnit.SECONDS));
            Lease adopted = client.lock(INVOICE, THIRTY_SECONDS, Renewal.Off.INSTANCE).adopt(token);
            assertEquals(lease.getFence(), adopted.getFence());
            CompletionStage<String> reason =
                    adopted.getEnd().thenApply(end -> ((LeaseState.Lost) end).getException().getReason());
            client.getMemory().advance(Duration.ofMinutes(1));
            assertEquals("expired", reason.toCompletableFuture().get(20, TimeUnit.SECONDS));
            assertFalse(adopted.isValid());
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
    void aMeterIsFlushedAtTheEndOfItsBlock() throws InterruptedException {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            try (Meter meter = client.meter(FIFTEEN_MINUTES)) {
                meter.add(PENDING, 30);
                meter.add(PENDING, 12);
                assertEquals(1L, meter.flush().getSettled());
                meter.add(PENDING, 1);
                assertTrue(meter.takeRefused().isEmpty());
            }
            assertEquals(43L, client.counter(PENDING, FIFTEEN_MINUTES).read());
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
    void aSweeperBillsRefusesAndReports() throws InterruptedException {
        try (Client client = Tallylock.connectBlocking("memory://")) {
            client.counter(PENDING, FIFTEEN_MINUTES).add(30);
            client.counter("session:43:billableSecondsPending", FIFTEEN_MINUTES).add(5);
            Sweeper sweeper = client.sweeper("session:*", FIFTEEN_MINUTES, "sweeper", THIRTY_SECONDS, FIFTEEN_MINUTES);
            SweepReport report = sweeper.sweep(claim -> {
                if (claim.getKeyText().equals(PENDING)) {
                    throw new RefusedException();
                }
                assertEquals(5, claim.getAmount());
                assertTrue(claim.getClaimId().startsWith("sweep.sweeper."));
            });
            assertTrue(report.isClean());
            assertEquals(BigInteger.valueOf(5), report.getCommittedUnits());
            assertEquals(1, report.getAborted());
            CountDownLatch stop = new CountDownLatch(1);
            List<SweepReport> reports = new ArrayList<>();
            sweeper.run(FIFTEEN_MINUTES, stop, claim -> stop.countDown(), reports::add);
            assertEquals(1, reports.get(0).getCommitted());
            assertEquals(0L, client.counter(PENDING, FIFTEEN_MINUTES).read());
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
