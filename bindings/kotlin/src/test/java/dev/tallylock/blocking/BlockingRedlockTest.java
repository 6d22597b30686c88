package dev.tallylock.blocking;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.tallylock.BusyException;
import dev.tallylock.ClosedException;
import dev.tallylock.InvalidArgumentException;
import dev.tallylock.LeaseState;
import dev.tallylock.LostException;
import dev.tallylock.Owner;
import dev.tallylock.Renewal;
import dev.tallylock.Tallylock;
import dev.tallylock.UnsupportedException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Locks on several servers as Java sees them. */
class BlockingRedlockTest {
    private static final Duration THIRTY_SECONDS = Duration.ofSeconds(30);
    private static final List<String> IN_MEMORY = List.of("memory://", "memory://", "memory://");
    private static final String INVOICE = "invoice:42";

    @Test
    void aLeaseExcludesOthersUntilItIsReleased() throws InterruptedException {
        try (Redlock redlock = Tallylock.connectRedlockBlocking(IN_MEMORY)) {
            Lease lease = redlock.lock(INVOICE, THIRTY_SECONDS).acquire();
            lease.ensure(Duration.ofSeconds(2));
            lease.verify(Duration.ofSeconds(2));
            Lock other = redlock.lock(INVOICE.getBytes(StandardCharsets.UTF_8), THIRTY_SECONDS, Renewal.Off.INSTANCE);
            BusyException busy = assertThrows(BusyException.class, other::acquire);
            assertEquals(INVOICE, busy.getKey());
            assertTrue(busy.getMessage().contains("of 3 nodes"), busy.getMessage());
            lease.extend(Duration.ofMinutes(1));
            assertTrue(lease.getRemaining().compareTo(THIRTY_SECONDS) > 0);
            lease.release();
            other.acquire(Duration.ofSeconds(5)).release();
        }
    }

    @Test
    void aBlockReturnsItsResultAndReleases() throws Exception {
        try (Redlock redlock = Tallylock.connectRedlockBlocking(IN_MEMORY, null, Duration.ofMillis(200), true)) {
            Lock lock = redlock.lock(INVOICE, THIRTY_SECONDS, Renewal.Default.INSTANCE, Duration.ofMinutes(10));
            long first = lock.withLock(Lease::getFence);
            long second = lock.withLock(Duration.ofSeconds(5), Lease::getFence);
            assertTrue(second > first);
        }
    }

    @Test
    void theExampleOfTheGuideRuns() throws Exception {
        List<String> urls = IN_MEMORY;
        try (Redlock redlock = Tallylock.connectRedlockBlocking(urls)) {
            Long fence = redlock.lock("invoice:42", Duration.ofSeconds(30)).withLock(Duration.ofSeconds(5), lease -> {
                lease.ensure(Duration.ofSeconds(2));
                return lease.getFence();
            });
            System.out.println("fence " + fence);
        }
    }

    @Test
    void aLeaseChangesHandsAndItsEndIsTold() throws Exception {
        List<String> names = Stream.generate(() -> "memory://" + UUID.randomUUID()).limit(3).toList();
        try (Redlock redlock = Tallylock.connectRedlockBlocking(names, Duration.ofSeconds(20))) {
            Lease lease = redlock.lock(INVOICE, THIRTY_SECONDS).acquire();
            String token = lease.transfer();
            assertSame(LeaseState.LetGo.INSTANCE, lease.getEnd().toCompletableFuture().get(20, TimeUnit.SECONDS));
            Lease adopted = redlock.lock(INVOICE, THIRTY_SECONDS).adopt(token);
            assertEquals(lease.getFence(), adopted.getFence());
            for (String name : names) {
                try (Client one = Tallylock.connectBlocking(name)) {
                    one.getMemory().advance(Duration.ofMinutes(1));
                }
            }
            LostException lost = assertThrows(LostException.class, adopted::release);
            assertEquals("expired", lost.getReason());
            assertFalse(adopted.isValid());
        }
    }

    @Test
    void whatIsAboutOneServerIsRefused() {
        try (Redlock redlock = Tallylock.connectRedlockBlocking(IN_MEMORY, null, null, false, Owner.None.INSTANCE, true)) {
            Lock lock = redlock.lock(INVOICE, THIRTY_SECONDS);
            assertThrows(UnsupportedException.class, lock::inspect);
            assertThrows(UnsupportedException.class, () -> lock.steal("token", "it hangs"));
        }
    }

    @Test
    void wrongArgumentsAreRefused() {
        Set<String> two = Set.of("redis://a", "redis://b");
        assertThrows(InvalidArgumentException.class, () -> Tallylock.connectRedlockBlocking(two));
        assertThrows(
                InvalidArgumentException.class,
                () -> Tallylock.connectRedlockBlocking(IN_MEMORY, null, Duration.ofNanos(-1)));
        try (Redlock redlock = Tallylock.connectRedlockBlocking(IN_MEMORY)) {
            assertThrows(InvalidArgumentException.class, () -> redlock.lock("", THIRTY_SECONDS));
            assertThrows(InvalidArgumentException.class, () -> redlock.lock(INVOICE, Duration.ZERO));
        }
    }

    @Test
    void aClosedClientIsClosed() {
        Redlock redlock = Tallylock.connectRedlockBlocking(IN_MEMORY);
        Lock lock = redlock.lock(INVOICE, THIRTY_SECONDS);
        redlock.close();
        assertThrows(ClosedException.class, lock::acquire);
        assertThrows(ClosedException.class, () -> lock.acquire(Duration.ofSeconds(5)));
    }
}
